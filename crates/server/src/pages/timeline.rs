//! The errors of a session along its events: a small picture, and the same as a list.

use super::words;
use selftest_grading::grade::GradeRecord;

/// Marks that are drawn and listed.
const SHOWN: usize = 60;
/// The axis within the 640 × 48 picture.
const LEFT: f64 = 10.0;
const RIGHT: f64 = 630.0;

pub(super) struct Timeline {
    pub(super) marks: Vec<Mark>,
    pub(super) points: Vec<Tick>,
    pub(super) errors: Vec<ErrorView>,
    pub(super) left_out: usize,
    pub(super) last: u64,
    pub(super) longest_run: u64,
    pub(super) description: String,
}

/// An error: a circle, larger for more of its kind.
pub(super) struct Mark {
    pub(super) x: String,
    pub(super) radius: String,
    pub(super) title: String,
}

/// An event that counted for the grade.
pub(super) struct Tick {
    pub(super) x: String,
    pub(super) title: String,
}

pub(super) struct ErrorView {
    pub(super) count: String,
    pub(super) class: &'static str,
    pub(super) tool: String,
    pub(super) event: u64,
    pub(super) example: String,
}

impl Timeline {
    pub(super) fn of(grade: &GradeRecord) -> Self {
        let details = &grade.details;
        let mut errors: Vec<_> = details.errors.iter().collect();
        errors.sort_by_key(|error| error.first_event);
        let events = details.evidence.iter().filter_map(|evidence| evidence.event);
        let last = errors
            .iter()
            .map(|error| error.first_event)
            .chain(events)
            .chain([details.messages.saturating_sub(1), 1])
            .max()
            .unwrap_or(1);
        let x = |event: u64| position(event, last);
        let shown = || errors.iter().take(SHOWN);
        Self {
            marks: shown()
                .map(|error| Mark {
                    x: x(error.first_event),
                    radius: radius(error.count),
                    title: format!(
                        "event {}: {} × {} at {}",
                        error.first_event,
                        error.count,
                        words::spaced(error.class.name()),
                        words::line(&error.tool)
                    ),
                })
                .collect(),
            points: details
                .evidence
                .iter()
                .filter_map(|evidence| Some((evidence.event?, evidence)))
                .take(SHOWN)
                .map(|(event, evidence)| Tick {
                    x: x(event),
                    title: format!("event {event}: {}", words::line(&evidence.words)),
                })
                .collect(),
            errors: shown()
                .map(|error| ErrorView {
                    count: words::count(error.count),
                    class: error.class.name(),
                    tool: words::line(&error.tool),
                    event: error.first_event,
                    example: words::line(&error.example),
                })
                .collect(),
            left_out: errors.len().saturating_sub(SHOWN),
            last,
            longest_run: details.longest_error_run,
            description: format!(
                "{} of {} among events 0 to {last}",
                words::plural(grade.total_errors, "error"),
                words::plural(errors.len() as u64, "kind")
            ),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture of 640 pixels")]
fn position(event: u64, last: u64) -> String {
    format!("{:.1}", LEFT + (RIGHT - LEFT) * (event as f64 / last.max(1) as f64))
}

#[expect(clippy::cast_precision_loss, reason = "a radius of at most 9 pixels")]
fn radius(count: u64) -> String {
    format!("{:.1}", (4.0 + (count as f64).ln_1p()).min(9.0))
}
