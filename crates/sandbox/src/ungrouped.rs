//! Stub for control groups on systems without them.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::standing::Held;
use crate::limits::Limits;

/// Uninhabited: this system has no control groups.
#[derive(Debug)]
pub struct RunGroup(Infallible);

/// Uninhabited: this system has no control groups.
#[derive(Debug)]
pub struct CaseGroup(Infallible);

impl RunGroup {
    /// Always fails.
    pub fn make() -> Result<Self, String> {
        Err("this system has no control groups".to_owned())
    }

    /// Returns the resources that this group can limit.
    pub fn held(&self) -> Held {
        match self.0 {}
    }

    /// Creates a group for one case.
    pub fn case(&self, _limits: &Limits) -> io::Result<CaseGroup> {
        match self.0 {}
    }
}

impl CaseGroup {
    /// Returns the group's path.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }
}
