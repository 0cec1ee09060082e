//! The list of all runs: reads the heads of JSON reports, renders `index.md`. Opens no file.

use std::cell::RefCell;
use std::fmt;
use std::io::{BufReader, Read};

use askama::Template;
use jiff::Timestamp;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use super::wording;
use crate::event::{ExperimentRun, RunModels};
use crate::outcome::{Outcome, Summary};
use crate::sut::namespace::RunId;
use selftest_stats::score::Threshold;
use selftest_text::escape::{self, Markdown, inline};

/// Name of the trend picture beside the index.
pub(super) const TREND_FILE: &str = "trend.svg";

/// Most bytes that are read of one file. The head of a report is a few kilobytes.
const HEAD: u64 = 4 * 1024 * 1024;

/// One run in the list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunEntry {
    /// Name of the run.
    pub run_id: RunId,
    /// When it started.
    pub started_at: Timestamp,
    /// Counts over its cases.
    pub summary: Summary,
    /// Absent for a run that did not end.
    pub outcome: Option<Outcome>,
    /// The judge's model.
    pub judge: String,
    /// The least overall score that passed.
    pub threshold: Threshold,
    /// The experiment that it is an arm of. Such a run says nothing of how the system fares from
    /// run to run.
    pub experiment: Option<ExperimentRun>,
}

/// What was found in the folder.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Newest first.
    pub(super) entries: Vec<RunEntry>,
    /// JSON files that are no report.
    pub(super) foreign: u32,
    /// The oldest files, which were not looked at.
    pub(super) left_out: u32,
}

/// The entry of a report. Stops where the cases begin, so that a long report costs no more than
/// a short one. `None` for anything that is no report of this program.
pub(super) fn read_entry(file: impl Read) -> Option<RunEntry> {
    let head = RefCell::new(Head::default());
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file.take(HEAD)));
    // Ends in an error at the cases on purpose; what counts is what the head holds by then.
    let _ = json.deserialize_map(HeadVisitor(&head));
    let head = head.into_inner();
    let mut summary = head.summary?;
    // What follows from the counts is computed and not believed.
    summary.passed.checked_add(summary.failed)?;
    summary.rate();
    Some(RunEntry {
        run_id: head.run_id?,
        started_at: head.timestamp?,
        summary,
        outcome: head.outcome?.0,
        judge: head.models?.judge,
        threshold: head.config?.effective_threshold,
        experiment: head.experiment,
    })
}

/// The `outcome` field, null or not.
#[derive(Deserialize)]
#[serde(transparent)]
struct Ended(Option<Outcome>);

#[derive(Default)]
struct Head {
    run_id: Option<RunId>,
    timestamp: Option<Timestamp>,
    summary: Option<Summary>,
    outcome: Option<Ended>,
    models: Option<RunModels>,
    config: Option<Judging>,
    experiment: Option<ExperimentRun>,
}

/// What the list tells of `config`.
#[derive(Deserialize)]
struct Judging {
    effective_threshold: Threshold,
}

impl Head {
    fn is_complete(&self) -> bool {
        self.run_id.is_some()
            && self.timestamp.is_some()
            && self.summary.is_some()
            && self.outcome.is_some()
            && self.models.is_some()
            && self.config.is_some()
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    RunId,
    Timestamp,
    Summary,
    Outcome,
    Models,
    Config,
    Experiment,
    #[serde(other)]
    Other,
}

struct HeadVisitor<'a>(&'a RefCell<Head>);

impl<'de> Visitor<'de> for HeadVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a report")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key::<Field>()? {
            let mut head = self.0.borrow_mut();
            match field {
                Field::RunId => head.run_id = Some(map.next_value()?),
                Field::Timestamp => head.timestamp = Some(map.next_value()?),
                Field::Summary => head.summary = Some(map.next_value()?),
                Field::Outcome => head.outcome = Some(map.next_value()?),
                Field::Models => head.models = Some(map.next_value()?),
                Field::Config => head.config = Some(map.next_value()?),
                Field::Experiment => head.experiment = map.next_value()?,
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if head.is_complete() {
                return Ok(());
            }
        }
        Ok(())
    }
}

// Every text below is `Markdown`, which only `escape` can make.
#[derive(Template)]
#[template(path = "index.md")]
struct Page {
    trend: Option<&'static str>,
    rows: Vec<Row>,
    remarks: Vec<String>,
}

struct Row {
    id: Markdown,
    arm: Option<Markdown>,
    link: Markdown,
    date: Markdown,
    pass_rate: Markdown,
    unscored: u32,
    outcome: &'static str,
    judge: Markdown,
}

/// The index as Markdown.
pub(super) fn render(runs: &Runs) -> Result<String, askama::Error> {
    let rows = runs.entries.iter().map(|run| Row {
        id: inline(run.run_id.as_str(), 80),
        arm: run.experiment.as_ref().map(|one| inline(&wording::arm(one), 120)),
        link: escape::link_target(&format!("{}.md", run.run_id)),
        date: inline(&selftest_text::wording::date_time(run.started_at), 40),
        pass_rate: inline(&wording::pass_rate(&run.summary), 60),
        unscored: run.summary.unscored,
        outcome: wording::outcome(run.outcome),
        judge: inline(&run.judge, 80),
    });
    let page = Page {
        trend: (!runs.entries.is_empty()).then_some(TREND_FILE),
        rows: rows.collect(),
        remarks: remarks(runs),
    };
    page.render().map(|text| format!("{}\n", text.trim_end()))
}

fn remarks(runs: &Runs) -> Vec<String> {
    let mut remarks = Vec::new();
    if runs.foreign > 0 {
        let files = selftest_text::wording::plural(runs.foreign, "JSON file");
        let which = if runs.foreign == 1 { "that is" } else { "that are" };
        remarks.push(format!(
            "The folder of the JSON reports also holds {files} {which} no report of a run."
        ));
    }
    if runs.left_out > 0 {
        let files = selftest_text::wording::plural(runs.left_out, "older file");
        remarks.push(format!("Only the newest are listed; {files} left out."));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fixture;

    #[test]
    fn an_entry_is_read_without_the_cases() {
        let text = fixture::rich_run().json().unwrap().unwrap();
        let entry = read_entry(text.as_bytes()).unwrap();
        assert_eq!(entry.run_id.as_str(), "selftest-20260206-1234-bcdfgh");
        assert_eq!(entry.judge, "ollama/qwen2.5:7b");
        assert_eq!(entry.outcome, Some(Outcome::Failed));
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
        insta::assert_snapshot!("index_empty", render(&Runs::default()).unwrap());
    }
}
