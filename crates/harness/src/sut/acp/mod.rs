//! The `acp` adapter: any agent of the Agent Client Protocol (version 1), a process per case over stdio,
//! confined like a program of the `command` adapter.
//!
//! The harness is the client. It offers to read files of the granted view and nothing else: each request
//! for a permission is refused, each request to write is an error, there is no terminal; all of it is
//! kept as evidence. The turn of a case is one prompt; a reply is another one in the same session.
//!
//! Not its business: how the program is started and kept in, which is the `command` adapter's.

mod session;
mod turn;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::command::{CommandHost, CommandSut};
use super::skill::Skill;
use super::sut_settings::{ProgramSettings, WorkFolder};
use super::{Isolation, SutError, SutSession, SystemUnderTest, Task};
use session::AcpSession;

/// An agent under test.
pub struct AcpSut {
    program: CommandSut,
    /// Whether the project itself is its folder, so that it is to read and nothing else.
    only_reads: bool,
    /// The command line in one line, redacted.
    shown: String,
}

impl AcpSut {
    /// An agent of these settings.
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
        let rule = "each permission that the agent asks for is refused, and so is each file that it \
                    wants written for it; files are read for it that it could read itself";
        isolation.enforced.push(rule.to_owned());
        isolation
    }

    fn can_reach_project(&self) -> bool {
        self.program.can_reach_project()
    }

    fn takes_fixtures(&self) -> bool {
        self.program.takes_fixtures()
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        self.program.check()
    }

    fn with_skill(&self, skill: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        let program = self.program.having(skill);
        Ok(Arc::new(Self { program, only_reads: self.only_reads, shown: self.shown.clone() }))
    }

    fn open<'a>(&'a self, task: &'a Task) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        async move {
            let session = AcpSession::new(self.program.session(task).await?, self.only_reads);
            Ok(Box::new(session) as Box<dyn SutSession>)
        }
        .boxed()
    }
}
