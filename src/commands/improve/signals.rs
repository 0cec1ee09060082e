//! `selftest improve signals`: what users' messages say about the answers that they got.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Subcommand;
use selftest_app::AppError;
use selftest_grading::grade::Proportion;
use selftest_grading::signal::measure::{LabelledMessage, SignalMeasure, measure_signals};
use selftest_grading::signal::{MessageSignals, classify_signals};
use selftest_service::grader::{
    GraderOptions, SignalCounts, SignalMessage, SignalScan, scan_signals,
};
use selftest_stats::Interval;
use selftest_text::escape::terminal;
use selftest_text::redact::Redactor;

use crate::args::sessions::{moment, nothing_found, roots};
use crate::args::{GlobalArgs, SessionArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

/// Actions on signals.
#[derive(Debug, Subcommand)]
pub enum SignalsAction {
    /// Classify one message of a user
    Classify {
        /// The message; `-` or none for standard input
        message: Option<String>,
        /// The same user's previous message, which it may repeat
        #[arg(long, value_name = "MESSAGE")]
        previous: Option<String>,
        /// Id of the skill that was used for the answer; copied to the output
        #[arg(long, value_name = "ID")]
        skill: Option<String>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Measure the rules on labelled messages: precision and recall, beside those of single words
    Measure {
        /// JSON lines with `message`, `previous`, and labels: `objection`, `gratitude`,
        /// `repetition`, `frustration`, each true or false; and optionally what the agent did
        /// between the two: `worked` (default true), `asked`, `refused` (default false)
        #[arg(value_name = "FILE")]
        labels: PathBuf,
        /// Maximum number of misread messages to print for each signal
        #[arg(long, value_name = "N", default_value_t = 0)]
        misread: usize,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Scan recorded sessions, newest files first
    Scan {
        /// Maximum number of messages to print; 0 for all. Counts cover all
        #[arg(long, value_name = "N", default_value_t = 30)]
        limit: usize,
        /// Options that select sessions.
        #[command(flatten)]
        sessions: SessionArgs,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

/// Most bytes of a message on standard input.
const MAX_INPUT_BYTES: u64 = 1024 * 1024;

/// Bytes of a message in the list.
const MAX_COLUMN: usize = 80;

pub(super) fn execute(action: &SignalsAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    match action {
        SignalsAction::Classify { message, previous, skill, json } => {
            let message = match message.as_deref() {
                None | Some("-") => &read_stdin()?,
                Some(message) => message,
            };
            let signals = classify_signals(message, previous.as_deref(), skill.as_deref());
            print(&if *json {
                format!("{:#}\n", serde_json::json!(signals))
            } else {
                classified(&signals)
            })?;
            Ok(Exit::Passed)
        }
        SignalsAction::Measure { labels, misread, json } => measure(labels, *misread, *json),
        SignalsAction::Scan { limit, sessions, json } => scan(*limit, sessions, *json, global),
    }
}

fn read_stdin() -> Result<String, AppError> {
    let mut bytes = Vec::new();
    // One byte more, to tell a message of the greatest length from a longer one.
    std::io::stdin()
        .lock()
        .take(MAX_INPUT_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| AppError::usage(anyhow!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > MAX_INPUT_BYTES {
        let most = MAX_INPUT_BYTES / 1024;
        return Err(AppError::usage(anyhow!("standard input has more than {most} KiB")).hint(
            Some("hand over one message; for sessions there is `selftest improve signals scan`"),
        ));
    }
    // A message that was cut within a character is classified without that character.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Most bytes of a file of labelled messages.
const MAX_LABELS_BYTES: u64 = 64 * 1024 * 1024;

/// Refuses a larger file as a whole: numbers of a part would be taken for those of the file.
fn read_labels(file: &Path) -> Result<String, AppError> {
    let shown = file.display();
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|file| file.take(MAX_LABELS_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| AppError::usage(anyhow!("cannot read {shown}: {error}")))?;
    if bytes.len() as u64 > MAX_LABELS_BYTES {
        let most = MAX_LABELS_BYTES / 1024 / 1024;
        return Err(AppError::usage(anyhow!("{shown} has more than {most} MiB"))
            .hint(Some("measure it in parts: each line is a message of its own")));
    }
    String::from_utf8(bytes)
        .map_err(|error| AppError::usage(anyhow!("cannot read {shown}: {error}")))
}

fn measure(file: &Path, misread: usize, as_json: bool) -> Result<Exit, AppError> {
    let shown = file.display();
    let text = read_labels(file)?;
    // Numbered before empty lines are dropped, so that errors name the line of the file.
    let lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let messages = lines
        .map(|(line, at)| {
            serde_json::from_str(line)
                .map_err(|error| AppError::usage(anyhow!("{shown}: line {at}: {error}")))
        })
        .collect::<Result<Vec<LabelledMessage>, AppError>>()?;
    let measures = measure_signals(&messages);
    if measures.is_empty() {
        eprint(&format!(
            "{shown} has no labelled message\n\
             hint: a line is {{\"message\": \"no, the other one\", \"objection\": true}}\n"
        ));
        return Ok(Exit::NothingRan);
    }
    if as_json {
        print(&format!("{:#}\n", serde_json::json!(measures)))?;
        return Ok(Exit::Passed);
    }
    let mut text = format!("{:<12} {:<6} {:<28} {}\n", "SIGNAL", "BY", "PRECISION", "RECALL");
    for SignalMeasure { signal, rules, words, misread: wrong, .. } in &measures {
        for (by, accuracy) in [("rules", rules), ("words", words)] {
            let [precision, recall] = [accuracy.precision, accuracy.recall].map(|it| counted(&it));
            text += &format!("{signal:<12} {by:<6} {precision:<28} {recall}\n");
        }
        for one in wrong.iter().take(misread) {
            let what = if one.label { "missed" } else { "false alarm" };
            text += &format!("  {what:<12} {}\n", terminal(&one.message, MAX_COLUMN));
        }
    }
    print(&text)?;
    Ok(Exit::Passed)
}

/// `45 of 50, 90 % [79, 96]`
fn counted(share: &Proportion) -> String {
    let counts = format!("{} of {}", share.count, share.of);
    match share.rate.zip(share.interval) {
        Some((rate, Interval { low, high })) => {
            format!("{counts}, {:.0} % [{:.0}, {:.0}]", rate * 100.0, low * 100.0, high * 100.0)
        }
        None => counts,
    }
}

fn classified(signals: &MessageSignals) -> String {
    let yes_no = |value: bool| if value { "yes" } else { "no" };
    let repetition = signals.repetition.map_or("- (no --previous message)", yes_no);
    let mut text = format!(
        "gratitude    {}\nrepetition   {repetition}\nfrustration  {}\n",
        yes_no(signals.gratitude),
        yes_no(signals.frustration)
    );
    if let Some(skill) = &signals.skill_version_id {
        text += &format!("skill        {}\n", terminal(skill, MAX_COLUMN));
    }
    text
}

fn scan(
    limit: usize,
    args: &SessionArgs,
    as_json: bool,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let roots = roots(&project, args)?;
    let since = args.since.as_ref().map(|text| moment(text, selftest_clock::now())).transpose()?;
    let options = GraderOptions {
        sources: roots.clone(),
        since,
        agent: args.agent.clone(),
        redactor: Redactor::new(project.environment.secret_values.iter().cloned()),
        ..GraderOptions::default()
    };
    let mut scan = scan_signals(&options);
    for problem in &scan.problems {
        eprint(&format!("warning: {}\n", terminal(problem, 400)));
    }
    let listed = scan.found.len();
    if limit > 0 {
        scan.found.truncate(limit);
    }
    if as_json {
        print(&format!("{:#}\n", serde_json::json!(scan)))?;
    } else if scan.counts.messages == 0 {
        nothing_found(&roots);
    } else {
        print(&summary(&scan, listed))?;
    }
    Ok(if scan.counts.messages == 0 { Exit::NothingRan } else { Exit::Passed })
}

/// `listed` messages were found, of which the first are in the scan.
fn summary(scan: &SignalScan, listed: usize) -> String {
    let SignalCounts { messages, with_previous, gratitude, repetition, frustration } = scan.counts;
    let mut text = format!("messages of people in {} sessions: {messages}\n", scan.sessions);
    for (name, count, of) in [
        ("gratitude", gratitude, messages),
        // The first message of a session can repeat nothing.
        ("repetition", repetition, with_previous),
        ("frustration", frustration, messages),
    ] {
        text += &format!("  {name:<12} {count:>6} of {of}\n");
    }
    if scan.found.is_empty() {
        return text;
    }
    text += &format!("\n{:<12} {:<38} {:>6}  {}\n", "SIGNAL", "SESSION", "EVENT", "MESSAGE");
    for message in &scan.found {
        text += &lines(message);
    }
    let more = listed - scan.found.len();
    if more > 0 {
        text += &format!("and {more} more: --limit 0 prints all\n");
    }
    text
}

/// A line for each signal of a message.
fn lines(message: &SignalMessage) -> String {
    let signals = &message.signals;
    let mut text = String::new();
    for (name, is_given) in [
        ("gratitude", signals.gratitude),
        ("repetition", signals.repetition == Some(true)),
        ("frustration", signals.frustration),
    ] {
        if is_given {
            text += &format!(
                "{name:<12} {:<38} {:>6}  {}\n",
                terminal(&message.session_id, 200),
                message.event,
                terminal(&message.text, MAX_COLUMN)
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_file_of_labels_is_read_as_a_whole_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        assert_eq!(read_labels(&path).unwrap(), "{}\n");
        File::create(&path).unwrap().set_len(MAX_LABELS_BYTES + 1).unwrap();
        let refused = read_labels(&path).unwrap_err().render(false);
        for part in ["labels.jsonl has more than 64 MiB", "hint: measure it in parts"] {
            assert!(refused.contains(part), "{refused}");
        }
    }
}
