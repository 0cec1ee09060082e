//! Stub for control groups on systems without them.

use std::convert::Infallible;
use std::io;
use std::path::Path;

use super::error::RunGroupError;
use super::support::EnforcedLimits;
use crate::limits::SandboxLimits;

/// Uninhabited: this system has no control groups.
#[derive(Debug)]
pub struct RunGroup(Infallible);

/// Uninhabited: this system has no control groups.
#[derive(Debug)]
pub struct CaseGroup(Infallible);

impl RunGroup {
    /// Always fails.
    pub fn create() -> Result<Self, RunGroupError> {
        Err(RunGroupError::Unsupported)
    }

    /// Returns the resources that this group can limit.
    pub fn enforced_limits(&self) -> EnforcedLimits {
        match self.0 {}
    }

    /// Creates a group for one case.
    pub fn create_case(&self, _limits: &SandboxLimits) -> io::Result<CaseGroup> {
        match self.0 {}
    }
}

impl CaseGroup {
    /// Returns the group's path.
    pub fn path(&self) -> &Path {
        match self.0 {}
    }
}
