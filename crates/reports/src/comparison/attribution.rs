//! Splits the change between two reports into agent, judge and infrastructure. Answers that are the
//! same in both serve as anchors. Pure.

use std::collections::BTreeMap;

use crate::document::ReportDocument;
use selftest_harness::gate::attribution::{
    Anchor, CaseShifts, ChangeAttribution, infrastructure_failure,
};
use selftest_harness::gate::baseline::case_digest_of;
use selftest_harness::outcome::{CaseResult, CaseStep};

/// A case is the same one in both runs if its digest and its repeat are.
type TrialKey = (String, Option<u32>);

/// Splits the change from `a` to `b`.
pub(super) fn attribution(a: &ReportDocument, b: &ReportDocument) -> Option<ChangeAttribution> {
    let before: BTreeMap<TrialKey, CaseResult> =
        results(a).filter_map(|case| Some((key(&case)?, case))).collect();
    let (mut anchors, mut shifts) = (Vec::new(), CaseShifts::default());
    // Repeats of a case are averaged, because they depend on each other.
    let (mut judged, mut checked) = (CaseMoves::new(), CaseMoves::new());
    for now in results(b) {
        shifts.not_run.extend(infrastructure_failure(&now));
        let Some(key) = key(&now) else { continue };
        let Some(then) = before.get(&key) else { continue };
        let pass = |case: &CaseResult| case.status().0.pass();
        match (overall(then), overall(&now)) {
            (Some(before), Some(after)) if is_same_answer(then, &now) => {
                let verdicts = pass(then).zip(pass(&now));
                let flipped = verdicts.is_some_and(|(then, now)| then != now);
                anchors.push(Anchor { scores: [before, after], flipped });
                shifts.same_answer += 1;
            }
            (Some(before), Some(after)) => {
                judged.entry(key.0).or_default().push(after - before);
            }
            (None, None) => {
                let change = pass(then).zip(pass(&now));
                let change = change.map(|(then, now)| f64::from(now) - f64::from(then));
                checked.entry(key.0).or_default().extend(change);
            }
            // A score on one side only is no pair.
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
    (shifts.judged, shifts.checked) = (means(&judged), means(&checked));
    ChangeAttribution::of(&shifts, &anchors, is_same_judge(a, b))
}

type CaseMoves = BTreeMap<String, Vec<f64>>;

fn means(moves: &CaseMoves) -> Vec<f64> {
    moves.values().filter_map(|of_case| selftest_stats::mean(of_case)).collect()
}

fn results(report: &ReportDocument) -> impl Iterator<Item = CaseResult> {
    report.cases.iter().enumerate().map(|(index, case)| case.result(index))
}

fn key(case: &CaseResult) -> Option<TrialKey> {
    Some((case_digest_of(case)?, case.repeat))
}

fn overall(case: &CaseResult) -> Option<f64> {
    Some(case.weakest_step().and_then(CaseStep::overall)?.get())
}

fn is_same_answer(a: &CaseResult, b: &CaseResult) -> bool {
    let said = |case: &CaseResult| -> Vec<Option<String>> {
        case.steps.iter().map(|step| Some(step.reply.as_ref()?.output.clone())).collect()
    };
    let said = (said(a), said(b));
    said.0 == said.1 && said.0.iter().all(Option::is_some)
}

fn is_same_judge(a: &ReportDocument, b: &ReportDocument) -> bool {
    let judge = |report: &ReportDocument| {
        report.models.judge_identity(&report.prompt_digests, &report.rubric.digest)
    };
    match (judge(a), judge(b)) {
        (Some(a), Some(b)) => b.difference_from(&a).is_none(),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn the_same_answers_are_anchors() {
        let same = attribution(&report(), &report()).unwrap();
        assert!(same.anchors > 0 && !same.judge_moved, "{same:?}");
        assert_eq!(same.agent.unwrap().mean.abs(), 0.0);
        // Another judge gives everything that it scores a lower score.
        let mut other = report();
        other.models.judge = "ollama/strict".to_owned();
        for step in other.cases.iter_mut().flat_map(|case| &mut case.steps) {
            let judgement = step.judgement.as_mut().map(|judgement| &mut judgement.verdict);
            if let Some(selftest_harness::judge::Verdict::Scored(card)) = judgement {
                card.overall = fixture::score(card.overall.get() / 2.0);
            }
        }
        let moved = attribution(&report(), &other).unwrap();
        assert!(moved.judge_moved && moved.judge.unwrap().mean < -0.1, "{moved:?}");
        assert!(moved.sentence().starts_with("the judge moved"), "{}", moved.sentence());
        assert_eq!(moved.agent.unwrap().mean.abs(), 0.0);
        // The answers changed as well, so that nothing measures the judge.
        for step in other.cases.iter_mut().flat_map(|case| &mut case.steps) {
            if let Some(reply) = &mut step.reply {
                reply.output.push_str(" More.");
            }
        }
        let unknown = attribution(&report(), &other).unwrap();
        assert!(unknown.agent.is_none() && unknown.judge.is_none(), "{unknown:?}");
    }
}
