//! Results in the formats of skill-creator's viewer and aggregation script: `grading.json`,
//! `timing.json`, `eval_metadata.json` and `benchmark.json`. Pure; opens no files.
//!
//! These formats have no third state. Undecided demands are therefore listed among the notes
//! instead of the expectations, and a run without any decided demand has no `grading.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::document::{CaseDocument, ReportDocument};
use selftest_checks::check::CheckOutcome;
use selftest_checks::sentence::BY_RULE_SUFFIX;
use selftest_harness::experiment::Arm;
use selftest_harness::judge::Verdict;
use selftest_harness::outcome::CheckResult;
use selftest_stats::{mean, standard_deviation};

/// Minimum probability of yes for an expectation to count as met.
const MIN_MET_PROBABILITY: f64 = 0.5;

/// One arm: its name in skill-creator, and its report.
#[derive(Debug, Clone, Copy)]
pub struct ArmConfiguration<'a> {
    /// `with_skill` or `without_skill`.
    pub name: &'a str,
    /// The report.
    pub report: &'a ReportDocument,
}

/// Returns the files by path below the iteration's folder. The first configuration is the new one,
/// the second the baseline.
pub fn files(skill: &str, configurations: &[ArmConfiguration<'_>]) -> BTreeMap<PathBuf, String> {
    let ids = eval_ids(configurations);
    let mut found = BTreeMap::new();
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for ArmConfiguration { name, report } in configurations {
        for case in &report.cases {
            let id = ids[case.id.as_str()];
            let (folder, number) = (PathBuf::from(format!("eval-{id}")), case.repeat.unwrap_or(1));
            let run = folder.join(name).join(format!("run-{number}"));
            let graded = GradedRun::of(case);
            let metadata = text(&json!({
                "eval_id": id,
                "eval_name": case.id,
                "prompt": case.prompt,
                "assertions": graded.texts(),
            }));
            // The script reads one location, the viewer the other.
            found.insert(folder.join("eval_metadata.json"), metadata.clone());
            found.insert(run.join("eval_metadata.json"), metadata);
            let timing = RunTiming::of(case);
            found.insert(run.join("timing.json"), text(&timing.document()));
            found.insert(run.join("outputs/answer.md"), answer(case));
            for open in &graded.undecided {
                notes.push(format!("eval {id}, {name}, run {number}: undecided: {open}"));
            }
            if graded.decided.is_empty() {
                notes.push(format!("eval {id}, {name}, run {number}: nothing was decided"));
                continue;
            }
            found.insert(run.join("grading.json"), text(&graded.document()));
            runs.push(BenchmarkRun { id, name, number, graded, timing, case });
        }
    }
    for ArmConfiguration { name, .. } in configurations {
        if !runs.iter().any(|run| run.name == *name && run.timing.tokens.is_some()) {
            notes.push(format!("{name}: tokens are not reported, 0 of a run stands for unknown"));
        }
    }
    let benchmark = benchmark(skill, configurations, &ids, &runs, &notes);
    found.insert(PathBuf::from("benchmark.json"), text(&benchmark));
    found
}

/// Returns the benchmark of one run: of an arm of an experiment by its name, of any other run as one
/// without a skill of its own.
pub fn benchmark_json(report: &ReportDocument) -> String {
    let arm = report.experiment.as_ref();
    let name = match arm.map(|arm| arm.arm) {
        Some(Arm::Treatment) => "with_skill",
        Some(Arm::Control) | None => "without_skill",
    };
    let skill = arm.map_or("none", |arm| arm.skill.as_str());
    let mut files = files(skill, &[ArmConfiguration { name, report }]);
    files.remove(Path::new("benchmark.json")).unwrap_or_default()
}

fn text(value: &Value) -> String {
    // The viewer embeds the JSON in a page as a script, which `</script>` would end.
    format!("{value:#}\n").replace("</", "<\\/")
}

/// Assigns each case an integer, because the script and the viewer compare IDs as integers.
fn eval_ids<'a>(configurations: &[ArmConfiguration<'a>]) -> BTreeMap<&'a str, i64> {
    let mut names: Vec<&str> = Vec::new();
    for case in configurations.iter().flat_map(|one| &one.report.cases) {
        if !names.contains(&case.id.as_str()) {
            names.push(&case.id);
        }
    }
    let numbers = numbers(&names);
    names.into_iter().zip(numbers).collect()
}

/// Returns the case file's own IDs if all are distinct integers, otherwise the positions: `1` and `01`
/// would share their files.
fn numbers(names: &[&str]) -> Vec<i64> {
    let own: Option<Vec<i64>> = names.iter().map(|name| name.parse().ok()).collect();
    own.filter(|own| own.iter().collect::<BTreeSet<_>>().len() == own.len())
        .unwrap_or_else(|| (0..).take(names.len()).collect())
}

/// Returns the last answer, escaped so that it cannot end a script on the page that displays it.
fn answer(case: &CaseDocument) -> String {
    let last = case.steps.iter().rev().find_map(|step| step.reply.as_ref());
    last.map(|reply| reply.output.replace("</", "&lt;/")).unwrap_or_default()
}

/// A decided demand.
struct DecidedDemand {
    text: String,
    passed: bool,
    evidence: String,
}

/// The demands of one run of a case.
struct GradedRun {
    decided: Vec<DecidedDemand>,
    undecided: Vec<String>,
}

impl GradedRun {
    fn of(case: &CaseDocument) -> Self {
        let mut graded = Self { decided: Vec::new(), undecided: Vec::new() };
        for CheckResult { check, finding } in &case.checks {
            // The suffix was added by our importer and is not part of the author's text.
            let text = check.strip_suffix(BY_RULE_SUFFIX).unwrap_or(check).trim().to_owned();
            let evidence = finding.sentence.clone();
            match finding.outcome {
                CheckOutcome::Held => graded.add(text, true, evidence),
                CheckOutcome::Failed => graded.add(text, false, evidence),
                CheckOutcome::Undecided => graded.undecided.push(format!("{text} ({evidence})")),
            }
        }
        let judged = case.steps.last().and_then(|step| step.judgement.as_ref());
        let card = match judged.map(|judgement| &judgement.verdict) {
            Some(Verdict::Scored(card)) => Some(card),
            _ => None,
        };
        for (expectation, number) in case.grounds.expectations.iter().zip(1..) {
            let asked = card.into_iter().flat_map(|card| &card.questions);
            let asked =
                asked.into_iter().find(|one| one.answer.question.expectation == Some(number));
            match asked.map(|one| one.probability.get()) {
                Some(yes) => {
                    graded.add(
                        expectation.clone(),
                        yes >= MIN_MET_PROBABILITY,
                        format!("P(yes) {yes:.2}"),
                    );
                }
                None => graded.undecided.push(expectation.clone()),
            }
        }
        graded
    }

    /// Texts must be unique in a file: a duplicate gets a number.
    fn add(&mut self, text: String, passed: bool, evidence: String) {
        let is_taken = |name: &str| self.decided.iter().any(|known| known.text == name);
        let numbered = (2..).map(|number| format!("{text} ({number})"));
        // Another demand may be written as a number would make it: `Answers (2)`.
        let name = std::iter::once(text.clone()).chain(numbered).find(|name| !is_taken(name));
        let text = name.unwrap_or(text);
        self.decided.push(DecidedDemand { text, passed, evidence });
    }

    fn texts(&self) -> Vec<&str> {
        self.decided.iter().map(|one| one.text.as_str()).collect()
    }

    fn passed(&self) -> usize {
        self.decided.iter().filter(|one| one.passed).count()
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of demands")]
    fn pass_rate(&self) -> f64 {
        self.passed() as f64 / self.decided.len().max(1) as f64
    }

    fn expectations(&self) -> Value {
        let one = |one: &DecidedDemand| json!({ "text": one.text, "passed": one.passed, "evidence": one.evidence });
        self.decided.iter().map(one).collect()
    }

    fn document(&self) -> Value {
        let (passed, total) = (self.passed(), self.decided.len());
        json!({
            "expectations": self.expectations(),
            "summary": {
                "passed": passed,
                "failed": total - passed,
                "total": total,
                "pass_rate": self.pass_rate(),
            },
            "user_notes_summary": {
                "uncertainties": [],
                "needs_review": self.undecided,
                "workarounds": [],
            },
        })
    }
}

/// The cost of one run of a case.
#[derive(Clone, Copy)]
struct RunTiming {
    milliseconds: u64,
    /// Number of tokens, if reported by the system under test.
    tokens: Option<u64>,
}

impl RunTiming {
    fn of(case: &CaseDocument) -> Self {
        let replies = case.steps.iter().filter_map(|step| step.reply.as_ref());
        Self {
            milliseconds: case.steps.iter().map(|step| step.duration_ms).sum(),
            tokens: replies.map(|reply| reply.tokens).sum(),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "milliseconds of one case")]
    fn seconds(self) -> f64 {
        self.milliseconds as f64 / 1000.0
    }

    fn document(self) -> Value {
        let mut document = json!({
            "duration_ms": self.milliseconds,
            "total_duration_seconds": self.seconds(),
        });
        if let Some(tokens) = self.tokens {
            document["total_tokens"] = json!(tokens);
        }
        document
    }
}

struct BenchmarkRun<'a> {
    id: i64,
    name: &'a str,
    number: u32,
    graded: GradedRun,
    timing: RunTiming,
    case: &'a CaseDocument,
}

fn benchmark(
    skill: &str,
    configurations: &[ArmConfiguration<'_>],
    ids: &BTreeMap<&str, i64>,
    runs: &[BenchmarkRun<'_>],
    notes: &[String],
) -> Value {
    let mut summary = Map::new();
    let mut means = Vec::new();
    for configuration in configurations {
        let own = || runs.iter().filter(|run| run.name == configuration.name);
        #[expect(clippy::cast_precision_loss, reason = "tokens of one case")]
        let measures = [
            ("pass_rate", own().map(|run| run.graded.pass_rate()).collect::<Vec<f64>>()),
            ("time_seconds", own().map(|run| run.timing.seconds()).collect()),
            // Runs without a token count are left out rather than counted as 0.
            ("tokens", own().filter_map(|run| run.timing.tokens).map(|it| it as f64).collect()),
        ];
        means.push(measures.each_ref().map(|(_, values)| mean(values)));
        let measures = measures.into_iter();
        let measures =
            measures.filter_map(|(key, values)| Some((key.to_owned(), spread(&values)?)));
        summary.insert(configuration.name.to_owned(), Value::Object(measures.collect()));
    }
    if let [new, baseline] = means[..] {
        summary.insert("delta".to_owned(), Value::Object(deltas(new, baseline)));
    }
    let repeats = configurations.iter().flat_map(|one| &one.report.cases);
    let repeats = repeats.map(|case| case.repeat.unwrap_or(1)).max().unwrap_or(0);
    let mut evals: Vec<i64> = ids.values().copied().collect();
    evals.sort_unstable();
    json!({
        "metadata": {
            "skill_name": skill,
            "timestamp": configurations.first().map(|one| one.report.timestamp),
            "evals_run": evals,
            "runs_per_configuration": repeats,
        },
        "run_summary": summary,
        "runs": runs.iter().map(run).collect::<Vec<_>>(),
        "notes": notes,
    })
}

/// Returns the differences of the means of pass rate, seconds and tokens; none to what is unknown.
fn deltas(new: [Option<f64>; 3], baseline: [Option<f64>; 3]) -> Map<String, Value> {
    let keys = [("pass_rate", 2_usize), ("time_seconds", 1), ("tokens", 0)];
    let compared = keys.into_iter().zip(new.into_iter().zip(baseline));
    compared
        .filter_map(|((key, digits), (new, baseline))| {
            let delta = new? - baseline?;
            Some((key.to_owned(), Value::from(format!("{delta:+.digits$}"))))
        })
        .collect()
}

/// Returns `None` without values: 0 would be taken for a measurement.
fn spread(values: &[f64]) -> Option<Value> {
    let deviation = standard_deviation(values).unwrap_or_default();
    Some(json!({ "mean": mean(values)?, "stddev": deviation }))
}

fn run(run: &BenchmarkRun<'_>) -> Value {
    let (passed, total) = (run.graded.passed(), run.graded.decided.len());
    json!({
        "eval_id": run.id,
        "eval_name": run.case.id,
        "configuration": run.name,
        "run_number": run.number,
        "result": {
            "pass_rate": run.graded.pass_rate(),
            "passed": passed,
            "failed": total - passed,
            "total": total,
            // The pass rate is of the decided ones alone.
            "undecided": run.graded.undecided.len(),
            "time_seconds": run.timing.seconds(),
            // The format requires a number; a note explains that 0 means unknown.
            "tokens": run.timing.tokens.unwrap_or_default(),
            "errors": u32::from(run.case.interruption.is_some()),
        },
        "expectations": run.graded.expectations(),
        "notes": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_demand_has_a_text_of_its_own() {
        let mut graded = GradedRun { decided: Vec::new(), undecided: Vec::new() };
        for text in ["a (2)", "a", "a", "a"] {
            graded.add(text.to_owned(), true, String::new());
        }
        assert_eq!(graded.texts(), ["a (2)", "a", "a (3)", "a (4)"]);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[0.5]), Some(json!({ "mean": 0.5, "stddev": 0.0 })));
        let new = [None, Some(3.0), Some(200.0)];
        let deltas = deltas(new, [Some(0.8), Some(1.5), None]);
        assert_eq!(Value::Object(deltas), json!({ "time_seconds": "+1.5" }));
    }

    #[test]
    fn two_ids_never_share_a_number() {
        assert_eq!(numbers(&["3", "1"]), [3, 1]);
        assert_eq!(numbers(&["1", "01"]), [0, 1]);
        assert_eq!(numbers(&["1", "a"]), [0, 1]);
    }
}
