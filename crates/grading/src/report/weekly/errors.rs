//! Errors by tool as bars: SVG without scripts or outside references. Returns text and opens no
//! file.

use askama::Template;

use super::words;
use crate::grade::WeeklyReport;
use crate::grade::patterns::ToolPattern;
use selftest_text::escape;
use selftest_text::wording::plural;

/// Most bars.
const BARS: usize = 10;
/// Bytes of a tool's name; what fits to the left of the bars.
const NAME: usize = 26;
/// Width of the longest bar.
const WIDEST: f64 = 310.0;
/// Where bars begin.
const LEFT: f64 = 210.0;

// Names of tools are foreign: `label` leaves no character that XML forbids, askama escapes the
// rest.
#[derive(Template)]
#[template(path = "weekly/errors.svg")]
struct Picture {
    week: String,
    height: usize,
    description: String,
    bars: Vec<Bar>,
}

struct Bar {
    y: usize,
    tool: String,
    numbers: String,
    width: String,
    /// Where the numbers begin.
    end: String,
}

/// The picture of the tools with most errors.
pub fn render(report: &WeeklyReport) -> Result<String, askama::Error> {
    let tools: Vec<&ToolPattern> =
        report.problem_areas.tools.items.iter().filter(|tool| tool.errors > 0).take(BARS).collect();
    let most = tools.first().map_or(1, |tool| tool.errors);
    let bars: Vec<Bar> = tools.iter().enumerate().map(|(at, tool)| bar(at, tool, most)).collect();
    let described: Vec<String> =
        bars.iter().map(|bar| format!("{}: {}.", bar.tool, bar.numbers)).collect();
    let picture = Picture {
        week: report.week.to_string(),
        height: 56 + 26 * bars.len().max(1),
        description: if bars.is_empty() {
            "No tool met an error.".to_owned()
        } else {
            described.join(" ")
        },
        bars,
    };
    picture.render().map(|text| format!("{}\n", text.trim_end()))
}

#[expect(clippy::cast_precision_loss, reason = "widths of bars need no precision")]
fn bar(at: usize, tool: &ToolPattern, most: u64) -> Bar {
    let width = (WIDEST * tool.errors as f64 / most as f64).max(2.0);
    let rate =
        tool.error_rate.map_or(String::new(), |rate| format!(" ({})", words::rate(Some(rate))));
    Bar {
        y: 44 + 26 * at,
        tool: label(&tool.tool),
        numbers: match tool.calls {
            // Some formats record results without the calls.
            0 => plural(tool.errors, "error"),
            calls => format!("{} of {calls} calls{rate}", tool.errors),
        },
        width: format!("{width:.1}"),
        end: format!("{:.1}", LEFT + width + 8.0),
    }
}

fn label(name: &str) -> String {
    // Control characters are shown by their number; these two are no XML either.
    escape::terminal(name, NAME).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
