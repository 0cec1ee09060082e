//! How a run and its cases stand against the baseline, in the same words for every report. Decides
//! nothing beyond the gate's findings.

use super::wording;
use selftest_harness::gate::finding::{CaseChange, GateFinding, GatedCase};
use selftest_text::escape::terminal;
use selftest_text::wording::{cases, plural};

/// Maximum length of a reason, in bytes.
const MAX_REASON: usize = 300;
/// Maximum number of cases named in one sentence.
const MAX_NAMED: usize = 30;

/// How a case stands against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseStanding {
    /// It changed, or could not be compared.
    Changed(CaseChange),
    /// Only the baseline has it.
    Removed,
    /// The gate has nothing to say about it.
    Same,
}

impl CaseStanding {
    /// Returns how the case with this id stands.
    pub fn of(gate: &GateFinding, id: &str) -> Self {
        gate.of_case(id).map_or(Self::Same, |case| Self::Changed(case.change))
    }

    /// Returns the label used in tables.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Changed(change) => change.label(),
            Self::Same => "SAME",
            Self::Removed => "REMOVED",
        }
    }

    /// Returns the name used in markup.
    pub fn value(self) -> String {
        self.label().to_lowercase().replace(' ', "-")
    }

    /// Returns the colour of the label as the name of a CSS class: `failed`, `passed`, `open`, or
    /// empty.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Changed(CaseChange::Regression) => "failed",
            Self::Changed(CaseChange::Fixed) => "passed",
            Self::Changed(CaseChange::StillFailing) | Self::Same => "",
            Self::Changed(_) | Self::Removed => "open",
        }
    }
}

/// Counts the changes that matter: `1 regression, 2 flaky cases, 20 cases compared with the
/// baseline`.
pub fn headline(gate: &GateFinding) -> String {
    let counted = [
        (CaseChange::Regression, "regression"),
        (CaseChange::Unconfirmed, "unconfirmed failure"),
        (CaseChange::Flaky, "flaky case"),
        (CaseChange::Fixed, "fixed case"),
        (CaseChange::New, "new case"),
    ];
    let counts = counted.into_iter().map(|(change, word)| (gate.cases_with(change).count(), word));
    let mut parts: Vec<String> = counts
        .filter(|(count, word)| *count > 0 || *word == "regression")
        .map(|(count, word)| plural(count as u64, word))
        .collect();
    parts.push(format!("{} compared with the baseline", cases(gate.compared)));
    parts.join(", ")
}

/// Returns what the gate says about the run as a whole, most important first.
pub fn of_run(gate: &GateFinding) -> Vec<String> {
    let of_cases: Vec<String> = gate.cases.iter().map(GatedCase::sentence).collect();
    let all = gate.sentences().into_iter();
    all.filter(|sentence| !of_cases.contains(sentence)).collect()
}

/// Returns what the gate says about the cases, worst first: cases that changed alike share a
/// sentence. `states_reason` is asked whether to state the reason of a case, which need not be
/// repeated if the report has it elsewhere.
pub fn of_cases(gate: &GateFinding, states_reason: impl Fn(&GatedCase) -> bool) -> Vec<String> {
    let mut groups: Vec<(String, GatedCase, Vec<&str>)> = Vec::new();
    for case in &gate.cases {
        let reason = case.reason.clone().filter(|_| states_reason(case));
        // Without the id, cases that changed alike have the same sentence.
        let alike = GatedCase { id: String::new(), reason, ..case.clone() };
        let key = alike.sentence();
        match groups.iter_mut().find(|(known, ..)| *known == key) {
            Some((_, _, ids)) => ids.push(&case.id),
            None => groups.push((key, alike, vec![&case.id])),
        }
    }
    let sentence = |(_, alike, ids): (String, GatedCase, Vec<&str>)| {
        let id = wording::listed(ids.into_iter(), MAX_NAMED).unwrap_or_default();
        GatedCase { id, ..alike }.sentence()
    };
    groups.into_iter().map(sentence).collect()
}

/// Describes the change of one case: scores before and now, trials, and the reason, unless it is part
/// of what is `known` anyway. Empty if there is nothing to report. On one line and free of control
/// characters.
pub fn details(case: &GatedCase, known: Option<&str>) -> String {
    let mut parts = Vec::new();
    if case.score_before.is_some() {
        let (then, now) = (wording::score(case.score_before), wording::score(case.score));
        parts.push(format!("score {then} then, {now} now"));
    }
    if case.decided > 1 {
        parts.push(format!("{} of {} trials passed", case.passed, case.decided));
    }
    let is_known = |why: &&str| known.is_some_and(|known| known.contains(*why));
    let why = case.reason.as_deref().filter(|why| !is_known(why));
    parts.extend(why.map(|why| terminal(why, MAX_REASON)));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gated(id: &str, change: CaseChange, reason: &str) -> GatedCase {
        let (passed, decided, score_before, score) = (0, 3, None, None);
        let (id, reason) = (id.to_owned(), Some(reason.to_owned()));
        GatedCase { id, change, reason, passed, decided, score_before, score }
    }

    #[test]
    fn cases_that_changed_alike_share_a_sentence() {
        let finding = json!({
            "mode": "no_regression", "baseline": "b.json",
            "baseline_run_id": "selftest-20260101-0000-a", "compared": 3, "passed_before": 3,
            "trials_needed": 3, "beyond_chance": false, "removed": ["e"],
            "cases": [
                gated("a", CaseChange::Regression, "exit 1"),
                gated("b", CaseChange::Regression, "exit 1"),
                gated("c", CaseChange::Regression, "exit 2"),
                gated("d", CaseChange::NotCompared, "it has no prompt"),
            ],
        });
        let gate: GateFinding = serde_json::from_value(finding).unwrap();
        let is_uncompared = |case: &GatedCase| case.change == CaseChange::NotCompared;
        assert_eq!(
            of_cases(&gate, is_uncompared),
            [
                "REGRESSION a, b and c: passed before, fails now (0 of 3 trials passed)",
                "NOT COMPARED d: not held against the baseline: it has no prompt",
            ]
        );
        assert_eq!(of_cases(&gate, |_| true).len(), 3);
        assert_eq!(headline(&gate), "3 regressions, 3 cases compared with the baseline");
        let about_run = of_run(&gate);
        assert!(about_run[0].contains("held against b.json"), "{about_run:?}");
        assert_eq!(about_run.last().unwrap(), "no more there: e");
        let standing = CaseStanding::of(&gate, "d");
        assert_eq!((standing.label(), &*standing.value()), ("NOT COMPARED", "not-compared"));
        assert_eq!(CaseStanding::of(&gate, "z"), CaseStanding::Same);
    }
}
