//! Renders the pictures of a weekly report as SVG without scripts or external references.

use askama::Template;

use super::format;
use crate::grade::patterns::ToolPattern;
use crate::grade::{GradeSummary, Proportion, WeeklyReport};
use crate::report::{GridLine, PlotSeries, WeekLabel};
use selftest_stats::plot::{PlotScale, column, number};
use selftest_text::escape;
use selftest_text::wording::plural;

// Plot areas within the 720 × 420 picture: rates at the top, grades at the bottom.
const RATES: PlotScale = PlotScale { top: 44.0, bottom: 184.0, low: 0.0, high: 1.0 };
const GRADES: PlotScale = PlotScale { top: 244.0, bottom: 384.0, low: 1.0, high: 5.0 };

// Numbers are already formatted and week names are generated, so no field is untrusted.
#[derive(Template)]
#[template(path = "weekly/trend.svg")]
struct TrendPicture {
    description: String,
    grid: Vec<GridLine>,
    whiskers: Vec<String>,
    /// Each series with its CSS class.
    series: [(&'static str, PlotSeries); 4],
    weeks: Vec<WeekLabel>,
}

/// Renders the history of a report.
pub fn trend_picture(report: &WeeklyReport) -> Result<String, askama::Error> {
    let weeks = &report.history;
    let rates =
        [0.0, 0.5, 1.0].map(|rate| GridLine::at(RATES, rate, format!("{} %", rate * 100.0)));
    let grades =
        [1.0, 2.0, 3.0, 4.0, 5.0].map(|grade| GridLine::at(GRADES, grade, grade.to_string()));
    let whiskers = weeks.iter().enumerate().filter_map(|(position, week)| {
        let ends = week.summary.outcomes.checks_passed.interval?;
        Some(RATES.whisker(column(position, weeks.len()), ends))
    });
    let labels = weeks.iter().enumerate().map(|(position, week)| {
        let name = week.week.to_string();
        // The report states the year; twelve labels with years would not fit.
        let label = name.split_once('-').map_or(name.as_str(), |(_, week)| week).to_owned();
        WeekLabel { x: number(column(position, weeks.len())), label }
    });
    let shares = |name: &str, share: fn(&GradeSummary) -> &Proportion| {
        PlotSeries::new(
            RATES,
            weeks.iter().map(|week| {
                let share = share(&week.summary);
                Some((share.rate?, format!("{}: {name} {}", week.week, format::share(share))))
            }),
        )
    };
    let passed = shares("checks passed", |summary| &summary.outcomes.checks_passed);
    let contradicted = shares("contradicted", |summary| &summary.outcomes.contradicted);
    let means = |name: &str, mean: fn(&GradeSummary) -> Option<f64>| {
        PlotSeries::new(
            GRADES,
            weeks.iter().map(|week| {
                let mean = mean(&week.summary)?;
                Some((mean, format!("{}: {name} {mean:.1}", week.week)))
            }),
        )
    };
    let efficiency = means("efficiency", |summary| summary.avg_tool_efficiency);
    let quality = means("quality", |summary| summary.avg_response_quality);
    let picture = TrendPicture {
        description: description(report),
        grid: rates.into_iter().chain(grades).collect(),
        whiskers: whiskers.collect(),
        series: [
            ("first", passed),
            ("second", contradicted),
            ("first", efficiency),
            ("second", quality),
        ],
        weeks: labels.collect(),
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

fn description(report: &WeeklyReport) -> String {
    let rows = report.history.iter().map(|week| {
        let summary = &week.summary;
        if summary.sessions == 0 {
            return format!("{}: no session.", week.week);
        }
        format!(
            "{}: checks passed {}, contradicted {}, efficiency {}, quality {}.",
            week.week,
            format::share(&summary.outcomes.checks_passed),
            format::share(&summary.outcomes.contradicted),
            format::mean(summary.avg_tool_efficiency),
            format::mean(summary.avg_response_quality)
        )
    });
    rows.collect::<Vec<_>>().join(" ")
}

const MAX_BARS: usize = 10;
/// Maximum length in bytes of a tool's name; what fits to the left of the bars.
const MAX_NAME: usize = 26;
/// Width of the longest bar.
const MAX_WIDTH: f64 = 310.0;
/// Horizontal start of the bars.
const LEFT: f64 = 210.0;

// Tool names are untrusted: `label` replaces the characters that XML forbids, and askama escapes
// the rest.
#[derive(Template)]
#[template(path = "weekly/errors.svg")]
struct ErrorsPicture {
    week: String,
    height: usize,
    description: String,
    bars: Vec<ChartBar>,
}

struct ChartBar {
    y: usize,
    tool: String,
    numbers: String,
    width: String,
    /// Horizontal position of the numbers.
    end: String,
}

/// Renders the tools with the most errors.
pub fn errors_picture(report: &WeeklyReport) -> Result<String, askama::Error> {
    let tools: Vec<&ToolPattern> =
        report.problem_areas.tools_with_errors().take(MAX_BARS).collect();
    // The first has the most errors; all bars are drawn in relation to it.
    let most = tools.first().map_or(1, |tool| tool.errors);
    let bars: Vec<ChartBar> =
        tools.iter().enumerate().map(|(at, tool)| bar(at, tool, most)).collect();
    let described: Vec<String> =
        bars.iter().map(|bar| format!("{}: {}.", bar.tool, bar.numbers)).collect();
    let picture = ErrorsPicture {
        week: report.week.to_string(),
        height: 56 + 26 * bars.len().max(1),
        description: if bars.is_empty() {
            "No tool had errors.".to_owned()
        } else {
            described.join(" ")
        },
        bars,
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

#[expect(clippy::cast_precision_loss, reason = "widths of bars need no precision")]
fn bar(at: usize, tool: &ToolPattern, most: u64) -> ChartBar {
    // Keep the shortest bar visible.
    let width = (MAX_WIDTH * tool.errors as f64 / most as f64).max(2.0);
    let rate =
        tool.error_rate.map_or(String::new(), |rate| format!(" ({})", format::rate(Some(rate))));
    ChartBar {
        y: 44 + 26 * at,
        tool: label(&tool.tool),
        numbers: match tool.calls {
            // Some formats record results without their calls.
            0 => plural(tool.errors, "error"),
            calls => format!("{} of {calls} calls{rate}", tool.errors),
        },
        width: format!("{width:.1}"),
        end: format!("{:.1}", LEFT + width + 8.0),
    }
}

fn label(name: &str) -> String {
    escape::terminal(name, MAX_NAME)
}
