//! Positions in the timeline of a session's errors.

use selftest_grading::grade::{GradeEvidence, GradeRecord};

/// Start and end of the axis in the 640 × 48 picture.
const LEFT: f64 = 10.0;
const RIGHT: f64 = 630.0;

/// Returns the number of the last known event.
pub(super) fn last_event(grade: &GradeRecord) -> u64 {
    let details = &grade.details;
    let errors = details.errors.iter().map(|error| error.first_event);
    let evidence = events(grade).map(|(event, _)| event);
    errors.chain(evidence).chain([details.messages.saturating_sub(1)]).fold(1, u64::max)
}

/// Returns the evidence that refers to a single event.
pub(super) fn events(grade: &GradeRecord) -> impl Iterator<Item = (u64, &GradeEvidence)> {
    let evidence = grade.details.evidence.iter();
    evidence.filter_map(|evidence| Some((evidence.event?, evidence)))
}

/// Returns the horizontal position of an event.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture of 640 pixels")]
pub(super) fn x(event: u64, last: u64) -> f64 {
    LEFT + (RIGHT - LEFT) * (event as f64 / last.max(1) as f64)
}

/// Returns the radius of an error's circle, which grows with the count of its kind.
#[expect(clippy::cast_precision_loss, reason = "a radius of at most 9 pixels")]
pub(super) fn radius(count: u64) -> f64 {
    (4.0 + (count as f64).ln_1p()).min(9.0)
}
