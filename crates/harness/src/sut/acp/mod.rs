//! The `acp` adapter: any agent that implements the Agent Client Protocol (version 1), with one
//! process per case over stdio, sandboxed like a program of the `command` adapter.
//!
//! The harness is the client. It offers only to read files of the granted view: permission requests
//! are rejected, write requests are errors, and there is no terminal. All of them are recorded as
//! evidence. Each turn of a case is one prompt; a reply is another prompt in the same session.
//!
//! Starting and sandboxing the program is up to the `command` adapter.

mod session;
mod turn;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::command::{CommandHost, CommandSut};
use super::skill::Skill;
use super::sut_settings::{ProgramSettings, WorkFolder};
use super::{Isolation, SutError, SutSession, SutTask, SystemUnderTest};
use session::AcpSession;

/// An agent under test.
pub struct AcpSut {
    program: CommandSut,
    /// True if the agent works in the project itself, which is then read-only.
    only_reads: bool,
    /// The redacted command line, for display.
    shown: String,
}

impl AcpSut {
    /// Creates an agent with these settings.
    pub fn new(settings: &ProgramSettings, host: CommandHost) -> Self {
        let run = host.redactor.apply(&settings.run.join(" ")).into_owned();
        let shown = selftest_text::one_line(&run, 120);
        let only_reads = settings.work_folder == WorkFolder::Project;
        Self { program: CommandSut::agent(settings.clone(), host), only_reads, shown }
    }
}

impl SystemUnderTest for AcpSut {
    fn describe(&self) -> String {
        format!("acp {}", self.shown)
    }

    fn isolation(&self) -> Isolation {
        let mut isolation = self.program.isolation();
        let rule = "each permission that the agent asks for is refused, except to load a skill of \
                    its own folder, and so is each file that it wants written for it; files are \
                    read for it that it could read itself";
        isolation.enforced.push(rule.to_owned());
        isolation
    }

    fn can_reach_project(&self) -> bool {
        self.program.can_reach_project()
    }

    fn supports_fixtures(&self) -> bool {
        self.program.supports_fixtures()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        self.program.check()
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        if !self.supports_fixtures() {
            return Err(SutError::NotStarted {
                what: "the agent works in the project itself, where no skill can be laid for it"
                    .to_owned(),
                hint: Some("set sut.acp.work_folder to copy".to_owned()),
            });
        }
        let program = self.program.clone_with_skill(skill)?;
        Ok(Arc::new(Self { program, only_reads: self.only_reads, shown: self.shown.clone() }))
    }

    fn open<'a>(
        &'a self,
        task: &'a SutTask,
    ) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        async move {
            let session = AcpSession::new(self.program.session(task).await?, self.only_reads);
            Ok(Box::new(session) as Box<dyn SutSession>)
        }
        .boxed()
    }
}
