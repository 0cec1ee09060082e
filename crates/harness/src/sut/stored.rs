//! A system under test for recorded answers. It describes their origin and gives no new ones.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::skill::Skill;
use super::{Isolation, SutError, SutSession, SutTask, SystemUnderTest};

/// Answers recorded in a report.
pub struct StoredAnswers {
    /// Description of the original system under test, from the report.
    pub origin: String,
    /// The protections that were enforced in the original run.
    pub isolation: Isolation,
}

impl SystemUnderTest for StoredAnswers {
    fn describe(&self) -> String {
        self.origin.clone()
    }

    fn isolation(&self) -> Isolation {
        self.isolation.clone()
    }

    fn can_reach_project(&self) -> bool {
        false
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    fn with_skill(&self, _: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        Err(SutError::failed("answers that were given already take no skill"))
    }

    fn open<'a>(&'a self, _: &'a SutTask) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        Box::pin(async { Err(SutError::failed("answers are taken from a report, none are given")) })
    }
}
