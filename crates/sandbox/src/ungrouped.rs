//! Stands for control groups on systems that have none.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::standing::Held;
use crate::limits::Limits;

/// There is none.
#[derive(Debug)]
pub struct RunGroup(Infallible);

/// There is none.
#[derive(Debug)]
pub struct CaseGroup(Infallible);

impl RunGroup {
    /// Says that there is none.
    pub fn make() -> Result<Self, String> {
        Err("this system has no control groups".to_owned())
    }

    /// The resources that it can limit.
    pub fn held(&self) -> Held {
        match self.0 {}
    }

    /// A group for one case.
    pub fn case(&self, _limits: &Limits) -> io::Result<CaseGroup> {
        match self.0 {}
    }
}

impl CaseGroup {
    /// Its folder.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }
}
