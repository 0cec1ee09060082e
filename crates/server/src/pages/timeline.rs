//! Places in the picture of a session's errors along its events.

use selftest_grading::grade::{Evidence, GradeRecord};

/// The axis within the 640 × 48 picture.
const LEFT: f64 = 10.0;
const RIGHT: f64 = 630.0;

/// The number of the last event that is known.
pub(super) fn last_event(grade: &GradeRecord) -> u64 {
    let details = &grade.details;
    let errors = details.errors.iter().map(|error| error.first_event);
    let evidence = events(grade).map(|(event, _)| event);
    errors.chain(evidence).chain([details.messages.saturating_sub(1)]).fold(1, u64::max)
}

/// The evidence for the grade that lies in one event.
pub(super) fn events(grade: &GradeRecord) -> impl Iterator<Item = (u64, &Evidence)> {
    let evidence = grade.details.evidence.iter();
    evidence.filter_map(|evidence| Some((evidence.event?, evidence)))
}

/// The horizontal place of an event.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture of 640 pixels")]
pub(super) fn x(event: u64, last: u64) -> f64 {
    LEFT + (RIGHT - LEFT) * (event as f64 / last.max(1) as f64)
}

/// The radius of the circle of an error, larger for more of its kind.
#[expect(clippy::cast_precision_loss, reason = "a radius of at most 9 pixels")]
pub(super) fn radius(count: u64) -> f64 {
    (4.0 + (count as f64).ln_1p()).min(9.0)
}
