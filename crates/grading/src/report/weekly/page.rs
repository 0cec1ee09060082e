//! The weekly report as Markdown. Returns text and opens no file.

use askama::Template;

use super::paths;
use super::texts::{ClusterText, SuggestionText, WeeklyTexts};
use crate::grade::WeeklyReport;
use selftest_text::escape::{self, Markdown, inline};
use selftest_text::wording;

/// Bytes of a line.
const LINE: usize = 700;

// Every text below is `Markdown`, which only `escape` can make: nothing foreign gets by.
#[derive(Template)]
#[template(path = "weekly/report.md")]
struct Page {
    week: Markdown,
    first_day: Markdown,
    last_day: Markdown,
    complete: bool,
    made: Markdown,
    lead: Vec<Markdown>,
    coverage: Markdown,
    numbers: Vec<[Markdown; 5]>,
    /// The pictures are files; a report of one agent has none.
    has_pictures: bool,
    trend_picture: Markdown,
    errors_picture: Markdown,
    alerts: Vec<Markdown>,
    suggestions: Vec<SuggestionLine>,
    no_suggestions: Option<Markdown>,
    more_suggestions: Option<Markdown>,
    task_types: Vec<[Markdown; 6]>,
    tools_remark: Markdown,
    tools: Vec<[Markdown; 5]>,
    classes: Vec<[Markdown; 5]>,
    clusters: Vec<ClusterLine>,
    more_clusters: Option<Markdown>,
    weeks: Vec<[Markdown; 6]>,
}

struct SuggestionLine {
    text: Markdown,
    numbers: Markdown,
    sessions: Markdown,
}

struct ClusterLine {
    what: Markdown,
    numbers: Markdown,
    example: Markdown,
    sessions: Markdown,
}

/// The report as Markdown. It shows the pictures that [`super::write`] puts beside it.
pub fn render(report: &WeeklyReport) -> Result<String, askama::Error> {
    let texts = WeeklyTexts::of(report);
    let page = Page {
        week: line(report.week.to_string()),
        first_day: line(report.week_start.to_string()),
        last_day: line(report.week_end.to_string()),
        complete: report.is_complete(),
        made: line(wording::date_time(report.generated_at)),
        lead: texts.lead.iter().map(line).collect(),
        coverage: line(texts.coverage),
        numbers: rows(texts.numbers),
        has_pictures: report.agent.is_none(),
        trend_picture: escape::link_target(&paths::trend_file(report.week)),
        errors_picture: escape::link_target(&paths::errors_file(report.week)),
        alerts: texts.alerts.iter().map(line).collect(),
        suggestions: texts.suggestions.iter().map(SuggestionLine::from).collect(),
        no_suggestions: texts.no_suggestions.map(line),
        more_suggestions: texts.more_suggestions.map(line),
        task_types: rows(texts.task_types),
        tools_remark: line(texts.tools_remark),
        tools: rows(texts.tools),
        classes: rows(texts.classes),
        clusters: texts.clusters.iter().map(ClusterLine::from).collect(),
        more_clusters: texts.more_clusters.map(line),
        weeks: rows(texts.weeks),
    };
    page.render().map(|text| format!("{}\n", text.trim_end()))
}

impl From<&SuggestionText> for SuggestionLine {
    fn from(suggestion: &SuggestionText) -> Self {
        Self {
            text: line(&suggestion.text),
            numbers: line(&suggestion.numbers),
            sessions: line(&suggestion.sessions),
        }
    }
}

impl From<&ClusterText> for ClusterLine {
    fn from(cluster: &ClusterText) -> Self {
        Self {
            what: line(&cluster.what),
            numbers: line(&cluster.numbers),
            example: line(&cluster.example),
            sessions: line(&cluster.sessions),
        }
    }
}

fn line(text: impl AsRef<str>) -> Markdown {
    inline(text.as_ref(), LINE)
}

fn rows<const COLUMNS: usize>(rows: Vec<[String; COLUMNS]>) -> Vec<[Markdown; COLUMNS]> {
    rows.into_iter().map(|row| row.map(line)).collect()
}
