//! `selftest improve skills record`: one execution, one message, or everything that sessions say.

use anyhow::anyhow;
use clap::{ArgGroup, Args};
use selftest_app::AppError;
use selftest_grading::improve::skill::ExecutionStatus;
use selftest_service::grader::skills::{DeriveOptions, NewExecution, NewMessage, SkillChangeError};
use selftest_store::{SkillRecord, SkillRef};
use selftest_text::one_line;
use selftest_text::wording::plural;
use serde_json::json;

use super::Setup;
use crate::args::SessionArgs;
use crate::args::sessions::{moment, nothing_found, roots};
use crate::commands::improve::skills::StatusName;
use crate::exit::Exit;
use crate::ui::{eprint, print};

/// An event to record.
#[derive(Debug, Args)]
// Not the group of the struct itself, to which all flags would belong.
#[group(skip)]
#[command(group(ArgGroup::new("what").required(true).multiple(false)))]
pub struct RecordArgs {
    /// This skill was used
    #[arg(long, value_name = "NAME", group = "what", requires = "status")]
    pub skill: Option<String>,
    /// The user wrote this after a skill was used in the session
    #[arg(long, value_name = "TEXT", group = "what", requires = "session")]
    pub message: Option<String>,
    /// Record everything from sessions of Claude Code and Hermes; see --source and --since
    #[arg(long, group = "what")]
    pub from_sessions: bool,

    /// Its version; default: the active one
    #[arg(long = "version", value_name = "V", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub version: Option<String>,
    /// Its outcome
    #[arg(long, value_enum, requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub status: Option<StatusName>,
    /// The session of the execution or the message
    #[arg(long, value_name = "ID", help_heading = "With --skill or --message")]
    pub session: Option<String>,
    /// Duration in milliseconds
    #[arg(long, value_name = "N", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub time_ms: Option<u32>,
    /// Number of turns of the task
    #[arg(long, value_name = "N", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub turns: Option<u32>,
    /// The error
    #[arg(long, value_name = "TEXT", requires = "skill", conflicts_with_all = ["from_sessions", "message"], help_heading = "With --skill")]
    pub error: Option<String>,
    /// The user significantly changed the result
    #[arg(long, conflicts_with = "from_sessions", help_heading = "With --skill or --message")]
    pub edited: bool,
    /// The user's previous message
    #[arg(long, value_name = "TEXT", requires = "message", help_heading = "With --message")]
    pub previous: Option<String>,

    /// Options that select sessions, with --from-sessions.
    #[command(flatten)]
    pub sessions: SessionArgs,
}

pub(super) async fn record(setup: &Setup, told: &RecordArgs) -> Result<Exit, AppError> {
    // One of the three is there: clap sees to it.
    match (&told.skill, &told.message) {
        (Some(skill), _) => execution(setup, told, skill).await,
        (None, Some(message)) => said(setup, told, message).await,
        (None, None) => sessions(setup, &told.sessions).await,
    }
}

/// Records an execution. An unregistered skill is an error here, but counted by the API.
async fn execution(setup: &Setup, told: &RecordArgs, skill: &str) -> Result<Exit, AppError> {
    let known =
        setup.tracker.find_by_name(skill, told.version.as_deref()).await.map_err(|error| {
            let is_unknown = matches!(error, SkillChangeError::Unknown(_));
            let hint = "`selftest improve skills promote NAME --file SKILL.md` makes a skill known";
            let failure = AppError::from(error);
            if is_unknown { failure.hint(Some(hint)) } else { failure }
        })?;
    let status = match told.status {
        Some(StatusName::Error) => ExecutionStatus::Error,
        Some(StatusName::Timeout) => ExecutionStatus::Timeout,
        // clap asks for one.
        Some(StatusName::Success) | None => ExecutionStatus::Success,
    };
    let record = setup.tracker.execution_record(NewExecution {
        skill: SkillRef::Named { skill: known.id, version: None },
        session_id: told.session.clone(),
        execution_status: status,
        user_edited_output: told.edited,
        // These two follow from the user's next message, which is recorded by itself.
        user_sent_thank_you: false,
        user_repeated_request: false,
        conversation_turns: told.turns,
        execution_time_ms: told.time_ms,
        error_message: told.error.clone(),
    });
    setup.tracker.record(std::slice::from_ref(&record)).await?;
    let SkillRecord::Execution { execution, .. } = record else { return Ok(Exit::Passed) };
    if setup.json {
        let json = json!({ "id": execution.id, "execution_status": execution.execution_status });
        print(&format!("{json:#}\n"))?;
    } else {
        let (name, version) = (one_line(&known.skill_name, 80), one_line(&known.version, 80));
        print(&format!("recorded: {name}, version {version}: {}\n", status.name()))?;
    }
    Ok(Exit::Passed)
}

async fn said(setup: &Setup, told: &RecordArgs, message: &str) -> Result<Exit, AppError> {
    let session_id = told.session.clone().unwrap_or_default();
    if session_id.trim().is_empty() {
        return Err(AppError::usage(anyhow!("--session is empty, expected the id of a session")));
    }
    let (signals, record) = setup.tracker.message_record(&NewMessage {
        session_id,
        message: message.to_owned(),
        previous: told.previous.clone(),
        user_edited_output: told.edited,
    });
    let recorded = setup.tracker.record(&[record]).await?;
    let counted = recorded.messages > 0;
    if setup.json {
        let json = json!({ "signals": signals, "counted": counted });
        print(&format!("{json:#}\n"))?;
    } else {
        let repetition = match signals.repetition {
            Some(true) => "yes",
            Some(false) => "no",
            None => "unknown without --previous",
        };
        let yes_no = |is: bool| if is { "yes" } else { "no" };
        print(&format!(
            "gratitude: {}, repetition: {repetition}, frustration: {}\n",
            yes_no(signals.gratitude),
            yes_no(signals.frustration)
        ))?;
    }
    if counted {
        return Ok(Exit::Passed);
    }
    eprint("no execution of that session waits for a message: nothing was recorded\n");
    Ok(Exit::NothingRan)
}

async fn sessions(setup: &Setup, args: &SessionArgs) -> Result<Exit, AppError> {
    let sources = roots(&setup.project, args)?;
    let since = args.since.as_ref().map(|text| moment(text, selftest_clock::now()));
    let since = since.transpose()?;
    let options = DeriveOptions { sources: sources.clone(), since, agent: args.agent.clone() };
    let derived = setup.tracker.record_sessions(options).await?;
    for problem in &derived.problems {
        eprint(&format!("warning: {}\n", one_line(problem, 400)));
    }
    if setup.json {
        print(&format!("{:#}\n", json!(derived)))?;
    } else if derived.files > 0 {
        print(&format!(
            "{} read: {} of skills in {}, {} with a next message\n",
            plural(derived.files, "file"),
            plural(derived.executions, "execution"),
            plural(derived.sessions, "session"),
            derived.answered
        ))?;
    }
    if !setup.json && derived.undated > 0 {
        eprint(&format!("{} without a date not recorded\n", plural(derived.undated, "use")));
    }
    if derived.files == 0 {
        nothing_found(&sources);
    }
    Ok(if derived.executions == 0 { Exit::NothingRan } else { Exit::Passed })
}
