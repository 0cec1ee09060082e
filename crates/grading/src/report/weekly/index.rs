//! The list of weekly reports. Returns text and opens no file.

use askama::Template;

use super::{paths, words};
use crate::grade::WeeklyReport;
use selftest_text::escape::{self, Markdown, inline};

// Cells are made of `Markdown`, which only `escape` can make, and of links around it.
#[derive(Template)]
#[template(path = "weekly/index.md")]
struct Page {
    trend: Option<Markdown>,
    rows: Vec<[String; 6]>,
}

/// The index: a row for each report, in their order. `has_page` tells whether the Markdown of a
/// week is there to link to.
pub(super) fn render(
    newest_first: &[&WeeklyReport],
    has_page: impl Fn(&WeeklyReport) -> bool,
) -> Result<String, askama::Error> {
    let rows = newest_first.iter().map(|report| {
        let summary = &report.summary;
        let alerts: Vec<String> =
            report.alerts.raised().map(|alert| words::metric(alert.metric).to_owned()).collect();
        let alerts = if alerts.is_empty() { "none".to_owned() } else { alerts.join(", ") };
        let row = [
            summary.sessions.to_string(),
            words::share(&summary.completion_rate),
            words::mean(summary.avg_tool_efficiency),
            words::mean(summary.avg_response_quality),
            alerts,
        ];
        let [sessions, completed, efficiency, quality, alerts] =
            row.map(|text| inline(&text, 200).to_string());
        let week = inline(&report.week.to_string(), 20);
        let week = if has_page(report) {
            format!("[{week}]({})", escape::link_target(&paths::page_file(report.week)))
        } else {
            week.to_string()
        };
        [week, sessions, completed, efficiency, quality, alerts]
    });
    let newest = newest_first.first().filter(|report| has_page(report));
    let page = Page {
        trend: newest.map(|report| escape::link_target(&paths::trend_file(report.week))),
        rows: rows.collect(),
    };
    page.render().map(|text| format!("{}\n", text.trim_end()))
}
