//! Asks the configured system under test one harmless question outside of a run, in its sandbox: the
//! quickest look at whether it can be tested. `init` shows what came back, `doctor` describes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::AppError;
use crate::options::RunSettings;
use crate::project::Project;
use crate::setup::RunSetup;
use selftest_harness::sut::namespace::{RunId, SessionId, TaskGroupId};
use selftest_harness::sut::{
    SutError, SutEvidence, SutReply, SutTask, SutTaskType, SystemUnderTest,
};
use selftest_models::guarded;
use selftest_text::one_line;

/// What is said.
pub const HELLO: &str = "hello";

/// Time limit of the answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The system under test gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GreetingError {
    /// It failed.
    #[error("{source}{}", in_brackets(source.hint()))]
    Failed {
        /// The failure, with its hint.
        source: SutError,
    },
    /// It took too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    TimedOut,
}

fn in_brackets(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

/// What came back.
#[derive(Debug)]
pub struct Greeting {
    /// Description of the system under test.
    pub sut: String,
    /// Its answer, or the reason why it gave none.
    pub answer: Result<SutReply, GreetingError>,
    /// Its traces, such as stderr.
    pub evidence: SutEvidence,
    /// Time until the answer.
    pub took: Duration,
}

impl Greeting {
    /// Returns true if there is an answer with a letter or a digit in it.
    pub fn is_answered(&self) -> bool {
        self.answer.as_ref().is_ok_and(|reply| reply.output.contains(char::is_alphanumeric))
    }
}

/// Says hello to a program, an agent or a server. `None` if the configuration tests something else.
pub async fn greet(project: &Project) -> Result<Option<Greeting>, AppError> {
    let resolved = &project.load(Vec::new())?;
    let settings = &resolved.config.sut;
    if settings.program().is_none() && settings.http.is_none() {
        return Ok(None);
    }
    let args = &RunSettings::default();
    let setup = RunSetup { project, resolved, args, suite: None, hidden: &[], earlier: None };
    let redactor = Arc::new(project.redactor(resolved));
    let Some(sut) = setup.external_sut(&redactor, &project.protected(resolved))? else {
        return Ok(None);
    };
    let now = selftest_clock::now();
    let task = SutTask {
        session_id: SessionId::within(&RunId::fresh(now)),
        task_group_id: TaskGroupId::fresh(now),
        task_type: SutTaskType::ReadInfo,
        seed: 0,
        fixtures: Arc::default(),
    };
    let begun = Instant::now();
    // Outlives the timed block: a session that takes too long is closed all the same.
    let mut session = None;
    let talk = async {
        sut.check().await?;
        session.insert(sut.open(&task).await?).submit(HELLO).await
    };
    let answer = match tokio::time::timeout(PATIENCE, talk).await {
        Ok(answer) => answer.map_err(|source| GreetingError::Failed { source }),
        Err(_) => Err(GreetingError::TimedOut),
    };
    let took = begun.elapsed();
    let evidence = match session {
        Some(session) => session.close().await,
        None => SutEvidence::default(),
    };
    let answer = answer
        .map(|reply| SutReply { output: redactor.apply(&reply.output).into_owned(), ..reply });
    Ok(Some(Greeting { sut: sut.describe(), answer, evidence, took }))
}

/// The question.
pub(crate) const QUESTION: &str = "Hello! Please answer in one short sentence.";

/// Maximum length of the quoted answer, in bytes.
const MAX_QUOTE: usize = 120;

/// What was seen of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrialAnswer {
    /// It answered. The description quotes the answer.
    Answered(String),
    /// It answered with nothing.
    Empty,
    /// No answer was seen, for this reason; and what the user can do.
    Missing {
        /// The reason.
        why: String,
        /// A remedy.
        hint: Option<String>,
    },
}

impl TrialAnswer {
    /// Asks, within a time limit, and closes the session.
    pub(crate) async fn ask(sut: &dyn SystemUnderTest, limit: Duration) -> Self {
        let now = selftest_clock::now();
        let task = SutTask {
            session_id: SessionId::fresh(now),
            task_group_id: TaskGroupId::fresh(now),
            task_type: SutTaskType::ReadInfo,
            seed: 0,
            fixtures: Arc::new([]),
        };
        let started = Instant::now();
        let mut session = match sut.open(&task).await {
            Ok(session) => session,
            Err(error) => return Self::failed(&error, None),
        };
        let asked = guarded::within_deadline(limit, session.submit(QUESTION));
        let reply = tokio::time::timeout(limit, asked).await;
        let took = started.elapsed();
        let evidence = session.close().await;
        match reply {
            Ok(Ok(reply)) => Self::seen(&reply, &evidence, took),
            Ok(Err(error)) => Self::failed(&error, evidence.hint),
            Err(_) => Self::Missing {
                why: format!("no answer within {} s", limit.as_secs_f64()),
                hint: evidence.hint,
            },
        }
    }

    fn failed(error: &SutError, hint: Option<String>) -> Self {
        let hint = error.hint().map(str::to_owned).or(hint);
        Self::Missing { why: error.to_string(), hint }
    }

    fn seen(reply: &SutReply, evidence: &SutEvidence, took: Duration) -> Self {
        if reply.output.trim().is_empty() {
            return Self::Empty;
        }
        let (said, status) = (one_line(&reply.output, MAX_QUOTE), reply.status);
        let mut words = format!("answered “{said}” ({status}) in {:.1} s", took.as_secs_f64());
        for note in reply.notes.iter().chain(&evidence.notes) {
            words += &format!("; {note}");
        }
        Self::Answered(words)
    }
}
