//! How cases stand against the baseline of their run, as the HTML report shows it: a word for each
//! case, and a group to filter by. Decides nothing that the gate has not decided.

use super::super::wording;
use selftest_harness::gate::finding::{Change, GateFinding, GatedCase};
use selftest_text::escape::terminal;

/// Most bytes of a reason.
const MAX_REASON: usize = 300;

/// Cases that are looked at together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray)]
pub(super) enum Group {
    /// Passed then, does not now.
    Worse,
    /// Did not pass then, passes now.
    Better,
    /// As it was.
    Same,
    /// Not in the baseline.
    New,
    /// Nothing can be said.
    NotCompared,
    /// In the baseline, and no more.
    Removed,
}

impl Group {
    /// The word of the filter.
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

    /// Its name in the page.
    pub(super) const fn value(self) -> &'static str {
        match self {
            Self::NotCompared => "not-compared",
            other => other.label(),
        }
    }

    /// The colour of its word.
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

/// A case beside the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Against {
    pub(super) group: Group,
    /// In the column.
    pub(super) label: &'static str,
    /// Scores then and now, and why; empty where there is nothing to say.
    pub(super) words: String,
}

impl Against {
    /// The case of this id. What the gate does not name is what it was.
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

    /// A case that is no more.
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
