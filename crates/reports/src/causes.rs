//! Groups cases that did not pass by what went wrong, so that a report names a cause once with all
//! its cases. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::case_view::is_mismatch;
use super::document::CaseDocument;
use super::wording::listed;
use selftest_checks::check::CheckOutcome;
use selftest_harness::outcome::{CaseResult, CaseStatus, CheckResult};

/// Maximum number of cases named with a cause.
const MAX_NAMED: usize = 30;

/// Matches what differs between two occurrences of one cause: addresses, digests, process ids,
/// ports, durations.
static VARYING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)0x[0-9a-f]+|\b[0-9a-f]{8,}\b|\d+(\.\d+)? ?m?s\b|\d{4,}")
        .expect("the pattern is a constant that a test uses")
});

/// A cause that at least two cases have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCause {
    /// Its number in the report, from 1.
    pub number: usize,
    /// Status of its cases.
    pub status: CaseStatus,
    /// The reason of the first case, in one line.
    pub reason: String,
    /// Ids of the cases, one per trial, in plan order.
    pub ids: Vec<String>,
}

impl SharedCause {
    /// Returns the name by which the rest of the report refers to it.
    pub fn name(&self) -> String {
        format!("cause {}", self.number)
    }

    /// Lists its cases: `a, b (3 times) and c`.
    pub fn cases(&self) -> String {
        listed(self.ids.iter().map(String::as_str), MAX_NAMED).unwrap_or_default()
    }
}

/// The shared causes of a run, the most frequent first.
#[derive(Debug, Clone, Default)]
pub struct SharedCauses {
    found: Vec<SharedCause>,
    /// Positions by key.
    positions: BTreeMap<CauseKey, usize>,
}

/// What identifies a cause.
type CauseKey = (CaseStatus, String);

/// A case that did not pass, as far as its cause is concerned.
#[derive(Debug)]
pub struct CaseFault<'a> {
    id: &'a str,
    key: CauseKey,
    reason: Cow<'a, str>,
}

impl<'a> CaseFault<'a> {
    /// Returns the fault of a case; `None` if it passed, or if a judge's scores decided it: equal
    /// scores are a coincidence, and no cause.
    pub fn of(case: &'a CaseResult) -> Option<Self> {
        let (status, reason) = case.status();
        if case.is_by_judge() {
            return None;
        }
        let session = case.session_id.as_str();
        Self::new(&case.scenario.id, session, status, Cow::Owned(reason?))
    }

    /// Returns the fault of a case in a report.
    pub fn of_document(case: &'a CaseDocument) -> Option<Self> {
        let is_failed = |check: &CheckResult| check.finding.outcome == CheckOutcome::Failed;
        let is_by_judge = case.status == CaseStatus::Failed
            && !case.checks.iter().any(is_failed)
            && !case.steps.iter().any(is_mismatch);
        let reason = case.reason.as_deref().filter(|_| !is_by_judge)?;
        Self::new(&case.id, case.session_id.as_str(), case.status, Cow::Borrowed(reason))
    }

    fn new(id: &'a str, session: &str, status: CaseStatus, reason: Cow<'a, str>) -> Option<Self> {
        if status == CaseStatus::Passed || reason.trim().is_empty() {
            return None;
        }
        // Each case has a session of its own, whose id would make equal reasons differ.
        let own = reason.replace(session, "");
        let same = VARYING.replace_all(&own, "…").into_owned();
        Some(Self { id, key: (status, same), reason })
    }
}

impl SharedCauses {
    /// Groups the cases that did not pass, given in plan order.
    pub fn of<'a>(faults: impl IntoIterator<Item = CaseFault<'a>>) -> Self {
        let mut groups: Vec<(CauseKey, SharedCause)> = Vec::new();
        let mut known: BTreeMap<CauseKey, usize> = BTreeMap::new();
        for CaseFault { id, key, reason } in faults {
            let position = *known.entry(key.clone()).or_insert_with(|| {
                let (status, ids, reason) = (key.0, Vec::new(), reason.into_owned());
                groups.push((key, SharedCause { number: 0, status, reason, ids }));
                groups.len() - 1
            });
            groups[position].1.ids.push(id.to_owned());
        }
        // Several trials of one case are one case.
        groups.retain(|(_, cause)| cause.ids.iter().any(|id| *id != cause.ids[0]));
        groups.sort_by_key(|(_, cause)| std::cmp::Reverse(cause.ids.len()));
        let mut causes = Self::default();
        for (number, (key, cause)) in groups.into_iter().enumerate() {
            causes.positions.insert(key, number);
            causes.found.push(SharedCause { number: number + 1, ..cause });
        }
        causes
    }

    /// Returns the causes.
    pub fn all(&self) -> &[SharedCause] {
        &self.found
    }

    /// Returns the cause of a fault, if other cases have it too.
    pub fn of_fault(&self, fault: Option<CaseFault<'_>>) -> Option<&SharedCause> {
        self.found.get(*self.positions.get(&fault?.key)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::case::Interruption;

    fn broken(index: usize, id: &str, why: &str) -> CaseResult {
        let case = fixture::case(index, id, fixture::scored([1.0; 4], ""));
        let interruption = Some(Interruption::SutError(why.to_owned()));
        CaseResult { interruption, steps: Vec::new(), ..case }
    }

    #[test]
    fn one_cause_is_named_once_with_its_cases() {
        let mut cases: Vec<CaseResult> = (0..8)
            .map(|at| {
                broken(at, &format!("c{at}"), &format!("process {} died at 0x7f{at}", 4000 + at))
            })
            .collect();
        cases.push(broken(8, "other", "no such file"));
        cases.push(broken(9, "x", "exit code 1"));
        cases.push(broken(10, "y", "exit code 1"));
        // Trials of one case are one case.
        cases.push(broken(11, "z", "exit code 2"));
        cases.push(broken(12, "z", "exit code 2"));
        let causes = SharedCauses::of(cases.iter().filter_map(CaseFault::of));
        let found: Vec<_> = causes.all().iter().map(|it| (it.number, &*it.reason)).collect();
        assert_eq!(found, [(1, "process 4000 died at 0x7f0"), (2, "exit code 1")]);
        assert_eq!(causes.all()[0].cases(), "c0, c1, c2, c3, c4, c5, c6 and c7");
        let of = |at: usize| causes.of_fault(CaseFault::of(&cases[at])).map(SharedCause::name);
        assert_eq!((of(3).as_deref(), of(8), of(12)), (Some("cause 1"), None, None));
        let documents: Vec<CaseDocument> =
            cases.iter().map(|case| CaseDocument::new(case, &[], None)).collect();
        let again = SharedCauses::of(documents.iter().filter_map(CaseFault::of_document));
        assert_eq!(again.all(), causes.all());
    }

    #[test]
    fn equal_scores_are_no_cause() {
        let low = |at, id| fixture::case(at, id, fixture::scored([0.1; 4], "bad"));
        let cases = [low(0, "a"), low(1, "b")];
        assert!(SharedCauses::of(cases.iter().filter_map(CaseFault::of)).all().is_empty());
        let documents = cases.map(|case| CaseDocument::new(&case, &[], None));
        let faults = documents.iter().filter_map(CaseFault::of_document);
        assert!(SharedCauses::of(faults).all().is_empty());
    }
}
