//! Comparison of cases with the baseline for the HTML report: a label per case, and a group to
//! filter by. Decides nothing beyond the gate's findings.

use super::super::wording;
use selftest_harness::gate::finding::{CaseChange, GateFinding, GatedCase};
use selftest_text::escape::terminal;

/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 300;

/// A group of cases in the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum ComparisonGroup {
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

impl ComparisonGroup {
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

    const fn of(change: CaseChange) -> Self {
        match change {
            CaseChange::Regression
            | CaseChange::Unconfirmed
            | CaseChange::Flaky
            | CaseChange::Undecided => Self::Worse,
            CaseChange::Fixed => Self::Better,
            CaseChange::StillFailing => Self::Same,
            CaseChange::New => Self::New,
            CaseChange::NotCompared | CaseChange::JudgeMoved => Self::NotCompared,
        }
    }
}

/// A case compared with the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CaseComparison {
    pub(super) group: ComparisonGroup,
    /// Label in the column.
    pub(super) label: &'static str,
    /// Scores before and now, and the reason; empty if there is nothing to report.
    pub(super) words: String,
}

impl CaseComparison {
    /// Returns the comparison for this case ID. A case that the gate does not mention is unchanged.
    pub(super) fn of(gate: &GateFinding, id: &str) -> Self {
        match gate.cases.iter().find(|case| case.id == id) {
            Some(found) => Self {
                group: ComparisonGroup::of(found.change),
                label: label(found.change),
                words: words(found),
            },
            None => Self {
                group: ComparisonGroup::Same,
                label: ComparisonGroup::Same.label(),
                words: String::new(),
            },
        }
    }

    /// Returns the comparison for a case that no longer exists.
    pub(super) fn removed() -> Self {
        let group = ComparisonGroup::Removed;
        Self { group, label: group.label(), words: String::new() }
    }
}

const fn label(change: CaseChange) -> &'static str {
    match change {
        CaseChange::Regression => "worse",
        CaseChange::Unconfirmed => "worse, not confirmed",
        CaseChange::Flaky => "flaky",
        CaseChange::Undecided => "no verdict",
        CaseChange::JudgeMoved => "not compared: the judge moved",
        CaseChange::StillFailing => "same, still failing",
        CaseChange::Fixed => "better",
        CaseChange::New => "new",
        CaseChange::NotCompared => "not compared",
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
