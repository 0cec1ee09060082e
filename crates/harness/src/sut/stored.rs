//! The system under test of answers that are there already: says who gave them, and gives none.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::skill::Skill;
use super::{Isolation, SutError, SutSession, SystemUnderTest, Task};

/// Answers that were kept in a report.
pub struct StoredAnswers {
    /// Who gave them, in the words of that report.
    pub given_by: String,
    /// The protections that were enforced then.
    pub isolation: Isolation,
}

impl SystemUnderTest for StoredAnswers {
    fn describe(&self) -> String {
        self.given_by.clone()
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

    fn open<'a>(&'a self, _: &'a Task) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        Box::pin(async { Err(SutError::failed("answers are taken from a report, none are given")) })
    }
}
