//! The `example` adapter: a small agent inside the program, so that a first run has something to
//! test. It needs no model: it searches the project's files, quotes them with file and line, and
//! asks back if it cannot know what is meant.
//!
//! Two faults are planted in it, so that there is something to find: `docs/example-agent.md`.

mod answer;
mod search;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::answer::SeenAnswer;
use super::project::ProjectFile;
use super::skill::{Skill, agent_names};
use super::{Isolation, SutError, SutEvidence, SutReply, SutSession, SutTask, SystemUnderTest};
use answer::ExampleAnswer;
use search::Library;
use selftest_checks::check::{FileChanges, ObservedToolCall};
use selftest_text::redact::Redactor;
use selftest_text::wording::plural;
use serde_json::json;

/// The example agent.
pub struct ExampleSut {
    library: Arc<Library>,
}

impl ExampleSut {
    /// Creates the agent, which knows these files of the project.
    pub fn new(files: &[ProjectFile]) -> Self {
        Self { library: Arc::new(Library::new(files)) }
    }
}

impl SystemUnderTest for ExampleSut {
    fn describe(&self) -> String {
        let files = plural(self.library.len() as u64, "project file");
        format!("the example agent, which searches {files}")
    }

    fn isolation(&self) -> Isolation {
        Isolation {
            enforced: vec![
                "the example agent is a part of this program: it reads, and changes nothing"
                    .to_owned(),
                "it is shown project files without reports, prompts and configuration".to_owned(),
            ],
            not_enforced: Vec::new(),
        }
    }

    fn can_reach_project(&self) -> bool {
        false
    }

    fn check(&self) -> BoxFuture<'_, Result<(), SutError>> {
        Box::pin(async { Ok(()) })
    }

    fn with_skill(&self, _: Arc<Skill>) -> Result<Arc<dyn SystemUnderTest>, SutError> {
        Err(SutError::NotStarted {
            what: "the example agent takes no skills".to_owned(),
            hint: Some(format!(
                "name your agent under `sut`, or set `sut.chat`; agents that take skills: {}",
                agent_names()
            )),
        })
    }

    fn open<'a>(&'a self, _: &'a SutTask) -> BoxFuture<'a, Result<Box<dyn SutSession>, SutError>> {
        let library = Arc::clone(&self.library);
        Box::pin(async move {
            Ok(Box::new(ExampleSession { library, asked: Vec::new() }) as Box<dyn SutSession>)
        })
    }
}

/// A conversation with the agent.
struct ExampleSession {
    library: Arc<Library>,
    /// What was said to it so far.
    asked: Vec<String>,
}

impl ExampleSession {
    fn say(&mut self, said: &str) -> Result<SutReply, SutError> {
        self.asked.push(said.to_owned());
        let ExampleAnswer { status, output, read } = answer::answer(&self.library, &self.asked);
        let call = |path: String| ObservedToolCall {
            name: "read_file".to_owned(),
            arguments: json!({ "path": path }),
        };
        let tool_calls = Some(read.into_iter().map(call).collect());
        // The project's files were redacted when they were read.
        let reply = SeenAnswer::of(&output, &[]).into_reply(status, &Redactor::default())?;
        Ok(SutReply { tool_calls, ..reply })
    }
}

impl SutSession for ExampleSession {
    fn submit<'a>(&'a mut self, prompt: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        let reply = self.say(prompt);
        Box::pin(async { reply })
    }

    fn reply<'a>(&'a mut self, reply: &'a str) -> BoxFuture<'a, Result<SutReply, SutError>> {
        let reply = self.say(reply);
        Box::pin(async { reply })
    }

    /// The agent cannot change any files.
    fn files<'a>(&'a mut self, _named: &'a [String]) -> BoxFuture<'a, Option<FileChanges>> {
        Box::pin(async { Some(FileChanges::default()) })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, SutEvidence> {
        Box::pin(async { SutEvidence::default() })
    }
}
