//! Comparison of cases with the baseline for the HTML report: a label per case, and a group to
//! filter by. Decides nothing beyond the gate's findings.

use super::super::wording;
use selftest_harness::gate::finding::{Change, GateFinding, GatedCase};
use selftest_text::escape::terminal;

/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 300;

/// A group of cases in the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Group {
    /// Passed in the baseline, does not pass now.
    Worse,
    /// Did not pass in the baseline, passes now.
    Better,
    /// Unchanged.
    Same,
    /// Not in the baseline.
    New,
    /// Not comparable.
    NotCompared,
    /// Only in the baseline.
    Removed,
}

impl Group {
    /// Returns the label in the filter.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Worse => "worse",
            Self::Better => "better",
            Self::Same => "same",
            Self::New => "new",
            Self::NotCompared => "not compared",
            Self::Removed => "removed",
        }
    }

    /// Returns the name used in the page's markup.
    pub(super) const fn value(self) -> &'static str {
        match self {
            Self::NotCompared => "not-compared",
            other => other.label(),
        }
    }

    /// Returns the CSS class of the label.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Worse => "failed",
            Self::Better => "passed",
            Self::Same => "",
            Self::New | Self::NotCompared | Self::Removed => "open",
        }
    }

    const fn of(change: Change) -> Self {
        match change {
            Change::Regression | Change::Unconfirmed | Change::Flaky | Change::Undecided => {
                Self::Worse
            }
            Change::Fixed => Self::Better,
            Change::StillFailing => Self::Same,
            Change::New => Self::New,
            Change::NotCompared => Self::NotCompared,
        }
    }
}

/// A case compared with the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Against {
    pub(super) group: Group,
    /// Label in the column.
    pub(super) label: &'static str,
    /// Scores before and now, and the reason; empty if there is nothing to report.
    pub(super) words: String,
}

impl Against {
    /// Returns the comparison for this case ID. A case that the gate does not mention is unchanged.
    pub(super) fn of(gate: &GateFinding, id: &str) -> Self {
        match gate.cases.iter().find(|case| case.id == id) {
            Some(found) => Self {
                group: Group::of(found.change),
                label: label(found.change),
                words: words(found),
            },
            None => Self { group: Group::Same, label: Group::Same.label(), words: String::new() },
        }
    }

    /// Returns the comparison for a case that no longer exists.
    pub(super) fn removed() -> Self {
        let group = Group::Removed;
        Self { group, label: group.label(), words: String::new() }
    }
}

const fn label(change: Change) -> &'static str {
    match change {
        Change::Regression => "worse",
        Change::Unconfirmed => "worse, not confirmed",
        Change::Flaky => "flaky",
        Change::Undecided => "no verdict",
        Change::StillFailing => "same, still failing",
        Change::Fixed => "better",
        Change::New => "new",
        Change::NotCompared => "not compared",
    }
}

fn words(case: &GatedCase) -> String {
    let mut parts = Vec::new();
    if case.score_before.is_some() {
        let (then, now) = (wording::score(case.score_before), wording::score(case.score));
        parts.push(format!("score {then} then, {now} now"));
    }
    if case.decided > 1 {
        parts.push(format!("{} of {} trials passed", case.passed, case.decided));
    }
    parts.extend(case.reason.as_deref().map(|why| terminal(why, MAX_REASON)));
    parts.join("; ")
}
