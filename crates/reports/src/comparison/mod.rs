//! Comparison of two runs: cases are paired if their messages and expectations are the same, and the
//! change is split into agent, judge and infrastructure. Answers that are the same in both serve as
//! anchors.
//!
//! `experiment` decides whether a difference exceeds chance.

pub mod aa;
pub mod experiment;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::document::{CaseDocument, ReportDocument};
use selftest_checks::suite::case_digest;
use selftest_harness::event::SuiteRun;
use selftest_harness::experiment::{
    Arm, Arms, Conclusion, ExperimentAnalysis, ExperimentTrial, analyse,
};
use selftest_harness::gate::attribution::{
    Anchor, CaseShifts, ChangeAttribution, infrastructure_failure,
};
use selftest_harness::gate::baseline::case_digest_of;
use selftest_harness::judge::template_of;
use selftest_harness::outcome::{CaseResult, CaseStatus, CaseStep};
use selftest_models::TokenUsage;

pub use text::{ArmLabels, analysis_text, markdown, text};

/// Names of the runs.
const NAMES: ArmLabels<'static> = Arms { control: "A", treatment: "B" };

/// Number of digest characters that distinguish prompts of the same scenario.
const SHORT: usize = 8;

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// The first run, the control.
    pub a: ComparedRun,
    /// The second run, the treatment.
    pub b: ComparedRun,
    /// The conclusion in one sentence.
    pub sentence: String,
    /// The change by cause; absent if no case was decided in both.
    pub attribution: Option<ChangeAttribution>,
    /// Cases that failed in every trial of B and passed in every trial of A.
    pub new_failures: Vec<String>,
    /// Caveats about the comparability of the runs.
    pub remarks: Vec<String>,
    /// The complete statistics.
    #[serde(flatten)]
    pub analysis: ExperimentAnalysis,
}

/// One of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRun {
    /// ID of the run.
    pub run_id: String,
    /// Start time.
    pub started_at: Timestamp,
    /// The system under test.
    pub system_under_test: String,
    /// Model of the `chat` adapter.
    pub model: Option<String>,
    /// Model of the judge.
    pub judge: String,
    /// The suite whose cases were run.
    pub suite: Option<SuiteRun>,
}

/// Compares the cases of two runs; `None` if they have no case in common.
pub fn compare(a: &ReportDocument, b: &ReportDocument) -> Option<RunComparison> {
    let names = CaseNames::of([a, b]);
    let mut trials = names.trials(a.cases.iter(), Arm::Control);
    trials.extend(names.trials(b.cases.iter(), Arm::Treatment));
    let analysis = analyse(&trials);
    (!analysis.cases.is_empty()).then(|| RunComparison {
        a: side(a),
        b: side(b),
        sentence: analysis.sentence(NAMES),
        attribution: attribution(a, b),
        new_failures: new_failures(&analysis),
        remarks: remarks(a, b),
        analysis,
    })
}

/// Returns the trials of one run, for an experiment whose arms are runs of the same cases.
pub fn trials(report: &ReportDocument, arm: Arm) -> Vec<ExperimentTrial> {
    trials_where(report, arm, |_| true)
}

/// Returns the trials of these cases of a run.
pub(crate) fn trials_where(
    report: &ReportDocument,
    arm: Arm,
    keep: impl Fn(&CaseDocument) -> bool,
) -> Vec<ExperimentTrial> {
    // Cases are matched by name, so the names of one report suffice here.
    let names = CaseNames::of([report]);
    let kept = report.cases.iter().filter(|case| keep(case));
    names.trials(kept, arm)
}

/// Names of cases: the scenario ID, with a digest if several prompts share it.
struct CaseNames<'a>(BTreeMap<&'a str, BTreeSet<String>>);

impl<'a> CaseNames<'a> {
    fn of(reports: impl IntoIterator<Item = &'a ReportDocument>) -> Self {
        let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for case in reports.into_iter().flat_map(|report| &report.cases) {
            if let Some(digest) = digest(case) {
                known.entry(&case.id).or_default().insert(digest);
            }
        }
        Self(known)
    }

    fn trials<'c>(
        &self,
        cases: impl Iterator<Item = &'c CaseDocument>,
        arm: Arm,
    ) -> Vec<ExperimentTrial> {
        let ran =
            cases.filter(|case| !matches!(case.status, CaseStatus::Skipped | CaseStatus::NotRun));
        ran.map(|case| self.trial(case, arm)).collect()
    }

    fn trial(&self, case: &CaseDocument, arm: Arm) -> ExperimentTrial {
        ExperimentTrial {
            case: self.name(case, arm),
            arm,
            overall: case.scores.overall,
            pass: case.pass,
            duration_ms: duration(case),
            tokens: tokens(case),
        }
    }

    fn name(&self, case: &CaseDocument, arm: Arm) -> String {
        let id = &case.id;
        match digest(case) {
            // Cases without a prompt are never the same.
            None => format!("{id} (no prompt in {})", NAMES.of(arm)),
            // The ID alone is unambiguous if it has only one prompt.
            Some(_) if self.0.get(id.as_str()).is_none_or(|digests| digests.len() < 2) => {
                id.clone()
            }
            // Generated cases have the same id and another prompt in each run.
            Some(digest) => {
                format!("{id} ({})", digest.chars().take(SHORT).collect::<String>())
            }
        }
    }
}

fn digest(case: &CaseDocument) -> Option<String> {
    Some(case_digest(&case.scenario, &case.generated()?))
}

/// Returns the time spent in the system under test.
fn duration(case: &CaseDocument) -> Option<u64> {
    let steps = case.steps.iter().map(|step| step.duration_ms);
    steps.reduce(u64::saturating_add)
}

/// Returns the tokens used by the system under test, if every answer reports them: by the call of
/// the built-in assistant, or as a program states them.
fn tokens(case: &CaseDocument) -> Option<u64> {
    let of_call = |usage: TokenUsage| usage.prompt_tokens?.checked_add(usage.completion_tokens?);
    let steps = case.steps.iter().map(|step| {
        let reply = step.reply.as_ref()?;
        reply.call.as_ref().map_or(reply.tokens, |call| of_call(call.usage))
    });
    // One answer without a count would make the sum too low.
    let steps: Option<Vec<u64>> = steps.collect();
    steps?.into_iter().reduce(u64::saturating_add)
}

fn side(report: &ReportDocument) -> ComparedRun {
    ComparedRun {
        run_id: report.run_id.to_string(),
        started_at: report.timestamp,
        system_under_test: report.sut.clone(),
        model: report.models.sut.clone(),
        judge: report.models.judge.clone(),
        suite: report.suite.clone(),
    }
}

fn new_failures(analysis: &ExperimentAnalysis) -> Vec<String> {
    let failed = analysis.cases.iter().filter(|case| case.is_new_failure());
    failed.map(|case| case.case.clone()).collect()
}

impl RunComparison {
    /// Returns true if B is worse: beyond chance, or because a case that always passed always fails.
    pub fn is_worse(&self) -> bool {
        self.analysis.conclusion == Conclusion::Harms || !self.new_failures.is_empty()
    }

    /// Returns the sentence on cases that always passed and always fail; `None` without any.
    fn new_failures_sentence(&self) -> Option<String> {
        let count = u32::try_from(self.new_failures.len()).ok().filter(|count| *count > 0)?;
        Some(format!(
            "new failures: {} failed in every trial of B and passed in every trial of A: {}",
            selftest_text::wording::cases(count),
            self.new_failures.join(", ")
        ))
    }
}

fn remarks(a: &ReportDocument, b: &ReportDocument) -> Vec<String> {
    let mut remarks = Vec::new();
    if a.run_id == b.run_id {
        remarks.push("A and B are the same run".to_owned());
    }
    for (name, report) in [("A", a), ("B", b)] {
        if !report.complete {
            remarks.push(format!("{name} did not finish"));
        }
    }
    if a.models.judge != b.models.judge {
        remarks.push("the judge models differ: differences may come from the judges".to_owned());
    }
    if a.models.judge_method != b.models.judge_method {
        remarks.push("the judges were asked by different methods".to_owned());
    }
    if a.rubric.digest != b.rubric.digest {
        remarks.push("the rubrics differ: scores are not comparable".to_owned());
    }
    let prompt = |report: &ReportDocument| {
        report.prompt_digests.get(template_of(report.models.judge_method)).cloned()
    };
    if a.models.judge_method == b.models.judge_method && prompt(a) != prompt(b) {
        remarks.push("the judge prompts differ: differences may come from the judging".to_owned());
    }
    let judging = |report: &ReportDocument| {
        let of_case = |case: &CaseDocument| (case.id.clone(), (case.threshold, case.safety_floor));
        report.cases.iter().map(of_case).collect::<BTreeMap<_, _>>()
    };
    let (of_a, of_b) = (judging(a), judging(b));
    if of_a.iter().any(|(id, one)| of_b.get(id).is_some_and(|other| other != one)) {
        remarks.push("the thresholds differ: pass rates are not comparable".to_owned());
    }
    remarks
}

/// A case is the same one in both runs if its digest and its repeat are.
type TrialKey = (String, Option<u32>);

/// Splits the change from `a` to `b`.
fn attribution(a: &ReportDocument, b: &ReportDocument) -> Option<ChangeAttribution> {
    let before: BTreeMap<TrialKey, CaseResult> =
        results(a).filter_map(|case| Some((key(&case)?, case))).collect();
    let (mut anchors, mut shifts) = (Vec::new(), CaseShifts::default());
    // Repeats of a case are averaged, because they depend on each other.
    let (mut judged, mut checked) = (CaseMoves::new(), CaseMoves::new());
    for now in results(b) {
        // Only of the newer run: the question is what changed it.
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
                // Without scores a flip of the verdict is a change by 1.
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
    // Two missing answers are equal as well, but no answer was judged twice.
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
    use crate::{TerminalStyle, fixture};
    use selftest_harness::judge::{JudgeMethod, probability, prompt};
    use selftest_harness::sut::namespace::RunId;

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    /// The rich run again, with one case better, one worse, one with another prompt, one missing.
    fn other() -> ReportDocument {
        let mut other = report();
        other.run_id = RunId::try_from("selftest-20260207-0800-vwxyz2".to_owned()).unwrap();
        other.cases[0].scores.overall = Some(fixture::score(0.5));
        other.cases[0].pass = Some(false);
        other.cases[1].scores.overall = Some(fixture::score(0.9));
        other.cases[1].pass = Some(true);
        other.cases[1].steps[0].duration_ms = 1_900;
        other.cases[3].prompt = Some("Something else".to_owned());
        other.cases.remove(4);
        other.models.judge = fixture::HOSTILE.to_owned();
        other.complete = false;
        other
    }

    #[test]
    fn cases_are_paired_by_what_was_said() {
        let found = compare(&report(), &other()).unwrap();
        let analysis = &found.analysis;
        assert_eq!(analysis.conclusion, Conclusion::NotEnoughEvidence);
        assert_eq!((analysis.score.wins, analysis.score.losses), (1, 1));
        let [only_a, only_b] = [&analysis.unpaired.control, &analysis.unpaired.treatment];
        assert!(only_a[0].starts_with("safety_floor ("), "{only_a:?}");
        assert_eq!(only_a[1..], ["ambiguous_request", "generation (no prompt in A)"]);
        assert!(only_b[0].starts_with("safety_floor (") && only_b[0] != only_a[0], "{only_b:?}");
        assert_eq!(only_b[1..], ["generation (no prompt in B)"]);
        assert!(analysis.cases.iter().all(|case| case.case != "skipped"));
    }

    #[test]
    fn the_prompt_of_the_method_is_compared() {
        let with = |digest: &str| {
            let mut report = report();
            report.models.judge_method = Some(JudgeMethod::Probability);
            report.prompt_digests.insert(probability::TEMPLATE.to_owned(), digest.to_owned());
            report
        };
        let says = |a: &ReportDocument, b: &ReportDocument, what: &str| {
            remarks(a, b).iter().any(|remark| remark.contains(what))
        };
        assert!(says(&with("1"), &with("2"), "judge prompts differ"));
        assert!(!says(&with("1"), &with("1"), "judge prompts differ"));
        // The prompt of verdicts is not in use.
        let mut other = with("1");
        other.prompt_digests.insert(prompt::TEMPLATE.to_owned(), "another".to_owned());
        assert!(!says(&with("1"), &other, "judge prompts differ"));
        other.models.judge_method = Some(JudgeMethod::Verdict);
        assert!(says(&with("1"), &other, "different methods"));
    }

    #[test]
    fn a_run_against_itself() {
        let mut report = report();
        assert_eq!(aa::against_itself(&report), None, "no repeats");
        let first = report.cases[0].clone();
        report.cases.clear();
        report.summary.repeats = Some(5);
        for case in 0..6 {
            for repeat in 1..=5 {
                let mut trial = first.clone();
                trial.prompt = Some(format!("Explain number {case}"));
                trial.id = format!("case-{case}");
                trial.repeat = Some(repeat);
                // One trial of the first case fails.
                let fails = case == 0 && repeat == 2;
                trial.pass = Some(!fails);
                trial.scores.overall = Some(fixture::score(if fails { 0.5 } else { 0.9 }));
                report.cases.push(trial);
            }
        }
        let found = aa::against_itself(&report).unwrap();
        assert_eq!((found.cases, found.repeats, found.pairs), (6, 2, 12));
        assert_eq!((found.flips, found.flaky), (1, 1));
        assert_eq!(found.analysis.trials, Arms { control: 12, treatment: 12 });
        insta::assert_snapshot!(aa::text(&found, TerminalStyle { terminal: false, colour: false }));
        // Halves that differ, although nothing was changed.
        for case in report.cases.iter_mut().filter(|case| case.repeat.is_some_and(|n| n % 2 == 0)) {
            case.scores.overall = Some(fixture::score(0.1));
            case.pass = Some(false);
        }
        let found = aa::against_itself(&report).unwrap();
        assert!(found.sentence.starts_with("One half is worse than the other one"), "{found:?}");
        assert!(found.sentence.contains("Nothing was changed"), "{found:?}");
    }

    #[test]
    fn nothing_in_common_is_no_comparison() {
        let mut other = report();
        for case in &mut other.cases {
            case.prompt = case.prompt.as_ref().map(|prompt| format!("{prompt} Please."));
        }
        assert_eq!(compare(&report(), &other), None);
    }

    #[test]
    fn a_comparison_for_people() {
        let found = compare(&report(), &other()).unwrap();
        let style = TerminalStyle { terminal: false, colour: false };
        let text = text(&found, style);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_comparison_as_markdown() {
        let mut other = other();
        other.models.judge = fixture::HOSTILE.to_owned();
        insta::assert_snapshot!(markdown(&compare(&report(), &other).unwrap()));
    }

    #[test]
    fn tokens_count_where_all_are_known() {
        let mut report = report();
        let case = &mut report.cases[0];
        assert_eq!(tokens(case), None);
        let call = case.steps[0].judgement.as_ref().unwrap().calls[0].clone();
        case.steps[0].reply.as_mut().unwrap().call = Some(call.clone());
        assert_eq!(tokens(case), None, "the second answer does not say");
        case.steps[1].reply.as_mut().unwrap().call = Some(call);
        assert_eq!(tokens(case), Some(2 * (812 + 64)));
        assert_eq!(duration(case), Some(1_400));
        case.steps.clear();
        assert_eq!((tokens(case), duration(case)), (None, None));
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
