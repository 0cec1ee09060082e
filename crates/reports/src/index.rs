//! The index of all runs: reads the heads of JSON reports and renders `index.md`. Opens no files.

use std::io::Read;
use std::sync::LazyLock;

use askama::Template;
use jiff::Timestamp;
use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::wording;
use selftest_harness::event::{ExperimentRun, RejudgedRun, RunModels, SuiteRun};
use selftest_harness::outcome::usage::RunUsage;
use selftest_harness::outcome::{RunOutcome, RunSummary};
use selftest_harness::sut::namespace::RunId;
use selftest_stats::score::Threshold;
use selftest_text::wording as text;

/// Name of the trend chart next to the index.
pub(super) const TREND_FILE: &str = "trend.svg";

/// Maximum number of bytes read from one file. The head of a report is a few kilobytes.
const MAX_HEAD: u64 = 4 * 1024 * 1024;

/// One run in the index.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEntry {
    /// ID of the run.
    pub run_id: RunId,
    /// Start time.
    pub started_at: Timestamp,
    /// Counts over its cases.
    pub summary: RunSummary,
    /// Outcome; absent if the run did not end.
    pub outcome: Option<RunOutcome>,
    /// Model of the judge.
    pub judge: String,
    /// Model of the generator; absent if the cases came from a suite.
    pub generator: Option<String>,
    /// Minimum overall score to pass.
    pub threshold: Threshold,
    /// The experiment it belongs to. Such a run says nothing about how the system develops from run
    /// to run.
    pub experiment: Option<ExperimentRun>,
    /// The suite whose cases were run; absent if they were generated.
    pub suite: Option<SuiteRun>,
    /// The run whose answers were judged again; absent if the run has answers of its own.
    pub rejudged: Option<RunId>,
    /// Usage of its models; absent if unknown.
    pub usage: Option<RunUsage>,
}

impl RunEntry {
    /// Returns the series that the run continues.
    pub fn series(&self) -> RunSeries {
        let replayed = self.suite.as_ref().is_some_and(|suite| suite.replayed);
        if self.experiment.is_some() {
            return RunSeries::Experiments;
        }
        if self.rejudged.is_some() {
            return RunSeries::JudgedAgain;
        }
        if replayed {
            return RunSeries::Replays;
        }
        let repeats = self.summary.repeats.unwrap_or(1);
        let suite = self.suite.as_ref().map(|suite| {
            let path = suite.path.trim_start_matches("./");
            (path.to_owned(), suite.repeats.max(repeats))
        });
        let (suite, repeats) = suite.map_or((None, repeats), |(path, all)| (Some(path), all));
        RunSeries::Suite { suite, repeats }
    }

    /// Returns the input and output tokens, the model time and the cost as text, each `-` if
    /// unknown.
    pub fn used(&self) -> [String; 3] {
        let nothing = || "-".to_owned();
        let Some(used) = &self.usage else { return [nothing(), nothing(), nothing()] };
        let total = &used.usage.total;
        let tokens = match (total.prompt_tokens, total.undivided_tokens) {
            (0, 0) => nothing(),
            (0, undivided) => undivided.to_string(),
            _ => format!("{} + {}", wording::tokens_in(total), wording::tokens_out(total)),
        };
        let time = if total.calls > 0 { text::duration(total.model_ms) } else { nothing() };
        [tokens, time, wording::cost(total, used.currency()).unwrap_or_else(nothing)]
    }
}

/// Runs that can be compared with each other from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSeries {
    /// Runs of one suite with the same number of repeats.
    Suite {
        /// Path of the suite; `None` for generated cases.
        suite: Option<String>,
        /// Number of times each case is run, from 1.
        repeats: u32,
    },
    /// Arms of experiments.
    Experiments,
    /// The cases of an earlier run, run again.
    Replays,
    /// The answers of an earlier run, judged again.
    JudgedAgain,
}

impl RunSeries {
    /// Returns true if the runs show how the system under test develops.
    pub fn is_development(&self) -> bool {
        matches!(self, Self::Suite { .. })
    }

    /// Returns the title, on one line. The path of a suite is untrusted.
    pub fn title(&self) -> String {
        let (suite, repeats) = match self {
            Self::Suite { suite, repeats } => (suite, *repeats),
            Self::Experiments => return "Experiments".to_owned(),
            Self::Replays => return "Replays".to_owned(),
            Self::JudgedAgain => return "Judged again".to_owned(),
        };
        let name = suite.as_deref().unwrap_or("Generated cases");
        let name = selftest_text::one_line(name, MAX_TITLE);
        if repeats > 1 { format!("{name}, each case {repeats} times") } else { name }
    }
}

/// Groups runs by series, in the order in which they are first met.
pub(super) fn by_series<'a>(
    runs: impl IntoIterator<Item = &'a RunEntry>,
) -> Vec<(RunSeries, Vec<&'a RunEntry>)> {
    let mut groups: Vec<(RunSeries, Vec<&RunEntry>)> = Vec::new();
    for run in runs {
        let series = run.series();
        match groups.iter_mut().find(|(known, _)| *known == series) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((series, vec![run])),
        }
    }
    groups
}

/// The runs in a folder.
#[derive(Debug, Default)]
pub(super) struct RunIndex {
    /// Newest first.
    pub(super) entries: Vec<RunEntry>,
    /// Number of JSON files that are not reports.
    pub(super) foreign: u32,
    /// Number of older files that were not read.
    pub(super) left_out: u32,
}

/// Maximum length of the title of a series, in bytes.
const MAX_TITLE: usize = 100;

/// Number of bytes read from a report at a time.
const CHUNK: u64 = 64 * 1024;

/// Maximum length of the `cases` key with surrounding whitespace, in bytes.
const MAX_KEY: usize = 64;

/// Matches the `cases` key in any formatting. It cannot match inside a string, where the quotes
/// would be escaped.
static CASES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""cases"\s*:\s*\["#).expect("the pattern is a constant that a test uses")
});

/// Reads the entry of a report, stopping where the cases start, so that a long report costs no more
/// than a short one. Returns `None` if the file is not a report of this program.
pub(super) fn read_entry(file: impl Read) -> Option<RunEntry> {
    // The head is a small part of a long report, so read only as much as needed.
    let mut file = file.take(MAX_HEAD);
    let (mut bytes, mut cases) = (Vec::new(), None);
    while cases.is_none() {
        // The key may be split between two reads.
        let searched = bytes.len().saturating_sub(MAX_KEY);
        if file.by_ref().take(CHUNK).read_to_end(&mut bytes).ok()? == 0 {
            break;
        }
        cases = CASES.find_at(&bytes, searched).map(|cases| cases.start());
    }
    let before = bytes[..cases.unwrap_or(bytes.len())].trim_ascii_end();
    // Complete the head to a valid document without cases.
    let head = [before, b"\"cases\":[]}"].concat();
    let mut head: ReportHead = serde_json::from_slice(&head).ok().or_else(|| {
        // A different program may have reordered the keys.
        file.read_to_end(&mut bytes).ok()?;
        serde_json::from_slice(&bytes).ok()
    })?;
    // Recompute what follows from the counts instead of trusting it.
    head.summary.passed.checked_add(head.summary.failed)?;
    head.summary.update_rate();
    Some(RunEntry {
        run_id: head.run_id,
        started_at: head.timestamp,
        summary: head.summary,
        outcome: head.outcome,
        judge: head.models.judge,
        generator: head.models.generator,
        threshold: head.config.effective_threshold,
        experiment: head.experiment,
        suite: head.suite,
        rejudged: head.rejudged.map(|rejudged| rejudged.run_id),
        usage: head.usage,
    })
}

/// The fields of a report that the index needs.
#[derive(Deserialize)]
struct ReportHead {
    run_id: RunId,
    timestamp: Timestamp,
    summary: RunSummary,
    // Null while the run is in progress, but never missing.
    #[serde(deserialize_with = "Option::deserialize")]
    outcome: Option<RunOutcome>,
    models: RunModels,
    config: ListedConfig,
    experiment: Option<ExperimentRun>,
    suite: Option<SuiteRun>,
    rejudged: Option<RejudgedRun>,
    usage: Option<RunUsage>,
}

/// The listed part of `config`.
#[derive(Deserialize)]
struct ListedConfig {
    effective_threshold: Threshold,
}

#[derive(Template)]
#[template(path = "index.md")]
struct IndexPage<'a> {
    runs: &'a RunIndex,
    /// The series with the newest run first.
    groups: Vec<(RunSeries, Vec<&'a RunEntry>)>,
}

/// Renders the index as Markdown.
pub(super) fn render(runs: &RunIndex) -> Result<String, askama::Error> {
    let groups = by_series(&runs.entries);
    IndexPage { runs, groups }.render().map(|text| format!("{}\n", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn an_entry_is_read_without_the_cases() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let entry = read_entry(text.as_bytes()).unwrap();
        assert_eq!(entry.run_id.as_str(), "selftest-20260206-1234-bcdfgh");
        assert_eq!(entry.judge, "ollama/qwen2.5:7b");
        assert_eq!(entry.outcome, Some(RunOutcome::Failed));
        let cut = &text[..text.find("\"cases\"").unwrap()];
        assert_eq!(read_entry(cut.as_bytes()), Some(entry));
    }

    #[test]
    fn the_order_of_fields_does_not_matter() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let document: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&text).unwrap();
        let mut turned = serde_json::Map::new();
        for (key, value) in document.iter().rev() {
            turned.insert(key.clone(), value.clone());
        }
        let turned = serde_json::Value::from(turned).to_string();
        assert_eq!(read_entry(turned.as_bytes()), read_entry(text.as_bytes()));
    }

    #[test]
    fn what_models_worked_is_told() {
        let priced = r#"{"calls":2,"prompt_tokens":1200,"completion_tokens":80,"model_ms":2500,"cost":0.0021}"#;
        let used = |total: &str| {
            let usage =
                format!(r#"{{"prices":{{"currency":"USD","models":{{}}}},"total":{total}}}"#);
            let text = fixture::rich_run().json().unwrap().unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            document["usage"] = serde_json::from_str(&usage).unwrap();
            read_entry(document.to_string().as_bytes()).unwrap().used()
        };
        assert_eq!(used(priced), ["1200 + 80", "2.5 s", "0.0021 USD"]);
        let undivided = r#"{"calls":0,"prompt_tokens":0,"completion_tokens":0,"undivided_tokens":90,"model_ms":0}"#;
        assert_eq!(used(undivided), ["90", "-", "-"]);
        let text = fixture::rich_run().json().unwrap().unwrap();
        let entry = RunEntry { usage: None, ..read_entry(text.as_bytes()).unwrap() };
        assert_eq!(entry.used(), ["-", "-", "-"]);
    }

    #[test]
    fn rates_are_not_believed() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let lie = text.replace("\"pass_rate\": 0.125", "\"pass_rate\": 1e300");
        assert_ne!(lie, text);
        assert_eq!(read_entry(lie.as_bytes()), read_entry(text.as_bytes()));
        let overflow = text.replace("\"passed\": 1,", "\"passed\": 4294967295,");
        assert_ne!(overflow, text);
        assert_eq!(read_entry(overflow.as_bytes()), None);
    }

    #[test]
    fn anything_else_is_no_entry() {
        let foreign = [
            "",
            "{}",
            "[]",
            "null",
            "<html>",
            "\u{0}",
            r#"{"run_id":"prod-1"}"#,
            r#"{"run_id":"selftest-20260206-1234-abc","timestamp":"yesterday"}"#,
        ];
        for text in foreign {
            assert_eq!(read_entry(text.as_bytes()), None, "{text}");
        }
        assert_eq!(read_entry("[".repeat(100_000).as_bytes()), None);
        assert_eq!(read_entry(std::io::repeat(b'{')), None);
        assert_eq!(
            read_entry(std::io::Read::chain(&b"{\"a\":\""[..], std::io::repeat(b'x'))),
            None
        );
    }

    #[test]
    fn index() {
        insta::assert_snapshot!(render(&fixture::runs()).unwrap());
        insta::assert_snapshot!("index_empty", render(&RunIndex::default()).unwrap());
    }
}
