//! The rows of the table of results, and the sections of cases that did not pass: one per case,
//! with all its trials. Pure.

use std::collections::BTreeMap;

use super::super::against::CaseStanding;
use super::super::case_view::{self, CaseView};
use super::super::causes::{CaseFault, SharedCause, SharedCauses};
use super::super::contrast::Contrast;
use super::super::traces::{self, EvidenceKind, EvidencePart};
use selftest_harness::gate::finding::GateFinding;
use selftest_stats::score::Score;
use selftest_text::wording::plural;

/// A row of the table of results.
pub(super) struct ResultRow {
    pub(super) name: String,
    /// Status of the task, with counts if trials differ.
    pub(super) status: String,
    /// The score, or the mean over the trials.
    pub(super) score: Option<Score>,
    pub(super) label: String,
    /// Trials, passed trials, their share and its interval; absent in a run without repeats.
    pub(super) trials: Option<[String; 4]>,
    /// How the case stands against the baseline; absent without one.
    pub(super) standing: Option<&'static str>,
    pub(super) reason: String,
}

/// A case that did not pass.
pub(super) struct CaseSection<'a> {
    pub(super) heading: String,
    /// The first trial that did not pass.
    pub(super) case: &'a CaseView<'a>,
    /// How many trials passed; absent in a run without repeats.
    pub(super) trials: Option<String>,
    /// Further trials that did not pass, by reason.
    pub(super) others: Vec<String>,
    /// How the case stands against the baseline; absent if it is unchanged or there is none.
    pub(super) standing: Option<&'static str>,
    /// The reason, or the cause that states it.
    pub(super) because: String,
    pub(super) contrast: Option<Contrast>,
    pub(super) evidence: Vec<EvidencePart>,
    /// Absent if the system under test does not report them.
    pub(super) calls: Option<Vec<String>>,
}

impl CaseSection<'_> {
    /// Returns true if the reason is not already part of what the case got.
    pub(super) fn has_own_reason(&self) -> bool {
        !self.case.got(&self.because).contains(&self.because)
    }

    /// Returns the reference, unless the comparison with it is shown.
    pub(super) fn reference(&self) -> Option<&str> {
        let is_shown = self.contrast.as_ref().is_some_and(Contrast::has_reference);
        traces::reference(self.case.result).filter(|_| !is_shown)
    }

    /// Counts the tool calls.
    pub(super) fn call_words(&self) -> String {
        plural(self.calls.as_ref().map_or(0, Vec::len) as u64, "tool call")
    }

    /// Lists what the evidence consists of. Without paths: nothing foreign stands in a heading that
    /// is markup.
    pub(super) fn evidence_words(&self) -> String {
        let is_excerpt = |part: &&EvidencePart| matches!(part.kind, EvidenceKind::Excerpt(_));
        let excerpts = self.evidence.iter().filter(is_excerpt).count() as u64;
        let others = self.evidence.iter().filter(|part| !is_excerpt(part));
        let mut words: Vec<String> = others.map(|part| part.title().to_lowercase()).collect();
        if excerpts > 0 {
            words.insert(0, plural(excerpts, "excerpt"));
        }
        words.join(", ")
    }
}

/// Returns the reason of a case, or the cause that states it.
pub(super) fn because(case: &CaseView<'_>, causes: &SharedCauses) -> String {
    let shared = causes.of_fault(CaseFault::of(case.result)).map(SharedCause::name);
    shared.or_else(|| case.reason.clone()).unwrap_or_default()
}

fn standing(case: &CaseView<'_>, gate: Option<&GateFinding>) -> Option<&'static str> {
    gate.map(|gate| CaseStanding::of(gate, &case.result.scenario.id).label())
}

/// Returns one row per case, in plan order.
pub(super) fn results(
    cases: &[CaseView<'_>],
    causes: &SharedCauses,
    gate: Option<&GateFinding>,
) -> Vec<ResultRow> {
    let repeated = case_view::repeated(cases);
    let single = cases.iter().filter(|case| case.result.repeat.is_none());
    let mut rows: Vec<ResultRow> = single
        .map(|case| ResultRow {
            name: case.name().to_owned(),
            status: case.task_status_word().to_owned(),
            score: case.score(),
            label: case.label(),
            trials: None,
            standing: standing(case, gate),
            reason: because(case, causes),
        })
        .collect();
    let all_trials = repeated.iter().map(|found| {
        let trials: Vec<&CaseView<'_>> =
            cases.iter().filter(|case| case.result.scenario.id == found.id).collect();
        let reasons = trials.iter().map(|case| because(case, causes));
        ResultRow {
            name: found.id.to_owned(),
            status: statuses(&trials),
            score: found.mean,
            label: found.result().label().to_owned(),
            trials: Some([
                found.trials().to_string(),
                found.passed_words(),
                found.rate(),
                found.interval(),
            ]),
            standing: trials.first().and_then(|case| standing(case, gate)),
            reason: reasons.into_iter().find(|reason| !reason.is_empty()).unwrap_or_default(),
        }
    });
    rows.extend(all_trials);
    rows
}

/// Returns the task statuses of the trials, the most frequent first.
fn statuses(trials: &[&CaseView<'_>]) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for case in trials {
        *counts.entry(case.task_status_word()).or_default() += 1;
    }
    if let [only] = counts.keys().collect::<Vec<_>>()[..] {
        return (*only).to_owned();
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    words.join(", ")
}

/// Returns one section per case: its first trial among `shown`, and what became of the others.
pub(super) fn sections<'a>(
    shown: impl Iterator<Item = &'a CaseView<'a>>,
    all: &'a [CaseView<'a>],
    causes: &SharedCauses,
    gate: Option<&GateFinding>,
) -> Vec<CaseSection<'a>> {
    let repeated = case_view::repeated(all);
    let mut sections: Vec<CaseSection<'a>> = Vec::new();
    let mut stated: Vec<(String, &str)> = Vec::new();
    for case in shown {
        let id = case.result.scenario.id.as_str();
        let because = because(case, causes);
        let same_case = |section: &&mut CaseSection<'_>| section.case.result.scenario.id == id;
        if let Some(section) = sections.iter_mut().find(same_case) {
            let same = section.because == because;
            let words = if same { "the same" } else { because.as_str() };
            section.others.push(format!("{}: {}: {words}", case.name(), case.label()));
            continue;
        }
        let mut evidence = traces::evidence(case.result);
        // The notes of the report state these, once for all cases.
        evidence.retain(|part| !matches!(part.kind, EvidenceKind::Exit | EvidenceKind::Isolation));
        // What a program printed before it failed in the same way is shown once.
        for part in evidence.iter_mut().filter(|part| part.kind == EvidenceKind::Stderr) {
            match stated.iter().find(|(known, _)| *known == part.text) {
                Some((_, name)) => part.text = format!("(the same as of {name})"),
                None => stated.push((part.text.clone(), case.name())),
            }
        }
        let found = repeated.iter().find(|found| found.id == id);
        let trials = found.map(|found| {
            format!(
                "{} passed ({}, 95 % interval {}); this is {}",
                found.passed_words(),
                found.rate(),
                found.interval(),
                case.name()
            )
        });
        sections.push(CaseSection {
            heading: if found.is_some() { id.to_owned() } else { case.name().to_owned() },
            case,
            trials,
            others: Vec::new(),
            standing: standing(case, gate).filter(|label| *label != CaseStanding::Same.label()),
            because: if because.is_empty() { "did not pass".to_owned() } else { because },
            contrast: Contrast::of(case.result),
            evidence,
            calls: traces::tool_calls(case.result),
        });
    }
    sections
}
