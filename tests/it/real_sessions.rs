//! Real public sessions, where they are at hand: every file has a stated outcome, and the numbers
//! that docs/recorded-sessions.md gives for the grades are what the code computes.
//!
//! The files are not part of the project. Their folder is `SELFTEST_TEST_DATA`, else
//! `../shared/data` beside the checkout; without it these tests are skipped.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use selftest_grading::grade::estimate::{LabelledGrade, SuccessEstimate, estimate};
use selftest_grading::grade::heuristic::{GradingContext, GradingResult, RuleGrader};
use selftest_grading::grade::{GradeField, GradeRecord, GradeWeights, Proportion, TaskOutcome};
use selftest_sessions::{
    Session, SessionCollector, SessionFormat, SessionReadError, SessionSource, ToolOutcome,
    find_session_files, read,
};
use selftest_stats::auc;
use selftest_text::redact::Redactor;

use crate::require::{self, Part};

/// The folder of recorded sessions.
pub(crate) fn sessions() -> Option<PathBuf> {
    shared_data("sessions")
}

/// A folder of the data that is no part of the project.
pub(crate) fn shared_data(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = std::env::var_os("SELFTEST_TEST_DATA")
        .map_or_else(|| root.join("../shared/data"), PathBuf::from);
    let folder = data.join(name);
    let why = format!("no folder {}; set SELFTEST_TEST_DATA", folder.display());
    let found = folder.is_dir().then(|| folder.canonicalize().unwrap());
    require::part(Part::SharedData, found.ok_or(why))
}

/// The grades of tau-bench's runs with whether each succeeded and its task. The rewards are taken
/// out before: with them the rules would know what they are held against.
fn tau_bench(folder: &Path) -> Vec<(GradeRecord, bool, String)> {
    let file = folder.join("openai-chat/tau-bench_gpt-4o-airline_even.json");
    let mut runs: Vec<serde_json::Value> =
        serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let rewards: Vec<f64> = runs
        .iter_mut()
        .map(|run| run.as_object_mut().unwrap().remove("reward").unwrap().as_f64().unwrap())
        .collect();
    let json = serde_json::to_vec(&runs).unwrap();
    let grades = grade_source(&SessionSource::bytes("tau-bench.json", json));
    assert_eq!(grades.len(), runs.len());
    let told =
        rewards.into_iter().zip(runs).map(|(it, run)| (it > 0.5, run["task_id"].to_string()));
    grades.into_iter().zip(told).map(|(grade, (success, task))| (grade, success, task)).collect()
}

fn grade(path: &Path) -> Vec<GradeRecord> {
    grade_source(&SessionSource::file(path))
}

fn grade_source(source: &SessionSource) -> Vec<GradeRecord> {
    let context =
        GradingContext { session_file: "x", graded_at: "2026-01-01T00:00:00Z".parse().unwrap() };
    let redactor = Redactor::default();
    let mut heuristic = RuleGrader::new(context, GradeWeights::default(), &redactor);
    read(source, &mut heuristic).unwrap();
    let graded = heuristic.into_gradings().into_iter().filter_map(|grading| match grading {
        GradingResult::Graded(record) => Some(*record),
        GradingResult::NotGradable { .. } => None,
    });
    graded.collect()
}

/// The listing's entry for a file.
struct Listed {
    format: String,
    tool_calls: u64,
    tool_errors: u64,
}

/// The listing, by path.
fn listing(folder: &Path) -> BTreeMap<PathBuf, Listed> {
    let text = fs::read_to_string(folder.join("MANIFEST.tsv")).unwrap();
    let mut rows = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|own| *own == name).unwrap();
    let (format, file) = (column("fmt"), column("file"));
    let (calls, errors) = (column("tool_calls"), column("tool_errors"));
    rows.filter(|row| row.len() > errors)
        .map(|row| {
            let number = |at: usize| row[at].parse().unwrap_or(0);
            let listed = Listed {
                format: row[format].to_owned(),
                tool_calls: number(calls),
                tool_errors: number(errors),
            };
            (folder.join(row[file]), listed)
        })
        .collect()
}

fn count(sessions: &[Session]) -> (u64, u64) {
    let events = || sessions.iter().flat_map(|session| &session.events);
    let calls = events().map(|event| event.calls.len() as u64).sum();
    // The listing does not tell refusals from failures: the records' flag is the same.
    let failed = |outcome: ToolOutcome| {
        u64::from(matches!(outcome, ToolOutcome::Failed | ToolOutcome::Rejected))
    };
    let errors =
        events().flat_map(|event| &event.results).map(|result| failed(result.outcome)).sum();
    (calls, errors)
}

#[test]
fn every_file_has_a_stated_outcome() {
    let Some(folder) = sessions() else { return };
    let listing = listing(&folder);
    let found = find_session_files(std::slice::from_ref(&folder), |problem| panic!("{problem}"));
    assert!(found.len() > 150, "{} files", found.len());
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    let mut faults = Vec::new();
    for found in &found {
        let path = found.source.path();
        let shown = path.strip_prefix(&folder).unwrap().display();
        let mut collector = SessionCollector::default();
        let outcome = match read(&found.source, &mut collector) {
            Ok(reading) => {
                let sessions = collector.into_sessions();
                assert_eq!(reading.sessions, sessions.len() as u64, "{shown}");
                let listed = listing.get(path);
                // The listing counts what the records flag; formats without a flag are read from
                // the text, and it does not count them.
                let flagged = [SessionFormat::ClaudeCode];
                if let Some(listed) = listed.filter(|_| flagged.contains(&reading.format)) {
                    let (calls, errors) = count(&sessions);
                    if (calls, errors) != (listed.tool_calls, listed.tool_errors) {
                        faults.push(format!(
                            "{shown}: {calls} calls and {errors} errors, listed are {} and {}",
                            listed.tool_calls, listed.tool_errors
                        ));
                    }
                }
                reading.format.to_string()
            }
            Err(SessionReadError::NoSession { format, .. }) => {
                format!("{format} without a session")
            }
            Err(SessionReadError::Unrecognised(_)) => {
                let format = listing.get(path).map_or("unlisted", |listed| &listed.format);
                format!("{format}: not recognised")
            }
            Err(error) => panic!("{shown}: {error}"),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    assert_eq!(faults, Vec::<String>::new());
    eprintln!("{outcomes:#?}");
}

/// How well the rules' grades tell success from failure, against the rewards that the benchmark
/// tau-bench computed from the state of its database.
#[test]
fn the_readme_tells_how_well_the_rules_predict_success() {
    let Some(folder) = sessions() else { return };
    let runs = tau_bench(&folder);
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md"))
            .unwrap();
    let mut missing = Vec::new();
    for field in
        [GradeField::TaskCompleted, GradeField::ResponseQuality, GradeField::ToolCallsEfficient]
    {
        let name = field.name();
        let scored =
            runs.iter().map(|(grade, success, _)| (f64::from(field.value(grade)), *success));
        let scored: Vec<_> = scored.collect();
        let found = auc(&scored).unwrap();
        let interval = found.interval.unwrap();
        let (low, high) = (interval.low, interval.high);
        let row = format!("| `{name}` | {:.2} | {low:.2} to {high:.2} |", found.area);
        eprintln!("{row}");
        missing.extend((!readme.contains(&row)).then_some(row));
    }
    assert_eq!(missing, Vec::<String>::new(), "rows that docs/recorded-sessions.md does not have");
}

/// Outcomes of recorded runs whose success is known, and how much of them the rules can tell:
/// `docs/recorded-sessions.md` has the numbers.
#[test]
fn outcomes_of_labelled_runs() {
    let Some(folder) = sessions() else { return };
    let runs = tau_bench(&folder).into_iter();
    let mut labelled: Vec<(GradeRecord, bool)> =
        runs.map(|(grade, success, _)| (grade, success)).collect();
    // Every run of Who&When failed.
    let failed = find_session_files(&[folder.join("who-and-when")], |problem| panic!("{problem}"));
    for found in
        failed.iter().filter(|found| found.source.path().extension() == Some("json".as_ref()))
    {
        labelled.extend(grade(found.source.path()).into_iter().map(|record| (record, false)));
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md");
    let docs = fs::read_to_string(docs).unwrap();
    let mut missing = Vec::new();
    for &outcome in TaskOutcome::ALL {
        let own: Vec<bool> = labelled
            .iter()
            .filter(|(record, _)| record.outcome == outcome)
            .map(|(_, succeeded)| *succeeded)
            .collect();
        let succeeded = own.iter().filter(|succeeded| **succeeded).count();
        let share = Proportion::new(succeeded as u64, own.len() as u64);
        let worth = share.rate.zip(share.interval).map(|(rate, interval)| {
            let [rate, low, high] = [rate, interval.low, interval.high].map(|it| it * 100.0);
            format!(" ({rate:.0} %, 95 % interval {low:.0} % to {high:.0} %)")
        });
        let row =
            format!("| `{outcome}` | {} | {succeeded}{} |", own.len(), worth.unwrap_or_default());
        eprintln!("{row}");
        missing.extend((!docs.contains(&row)).then_some(row));
        if outcome == TaskOutcome::ChecksPassed && !own.is_empty() {
            assert!(succeeded * 10 >= own.len() * 8, "{succeeded} of {}", own.len());
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "rows that docs/recorded-sessions.md does not have");
}

/// How well an estimate predicts success that is fitted on labels of the same project, on tasks
/// that were held out: `docs/recorded-sessions.md` has the numbers.
#[test]
fn estimate_of_labelled_runs() {
    let Some(folder) = sessions() else { return };
    let runs = tau_bench(&folder);
    let labelled =
        runs.iter().map(|(grade, success, task)| LabelledGrade { grade, success: *success, task });
    let SuccessEstimate::Fitted(fit) = estimate(&labelled.collect::<Vec<_>>()) else {
        panic!("not fitted")
    };
    let interval = fit.auc_interval.unwrap();
    let said = format!(
        "AUC {:.2} [{:.2}, {:.2}], Brier score {:.3} ({:.3} by the share of successes alone)",
        fit.auc, interval.low, interval.high, fit.brier, fit.brier_of_share
    );
    eprintln!("{} labels of {} tasks: {said}", fit.labels, fit.tasks);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recorded-sessions.md");
    assert!(fs::read_to_string(docs).unwrap().contains(&said), "{said}");
}

/// Of the errors of recorded Claude Code sessions hardly any is left without a cause, and what
/// verifies a task names its event.
#[test]
fn errors_and_outcomes_of_recorded_sessions() {
    let Some(folder) = sessions() else { return };
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for found in find_session_files(&[folder], |problem| panic!("{problem}")) {
        let context = GradingContext {
            session_file: "x",
            graded_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        let redactor = Redactor::default();
        let mut heuristic = RuleGrader::new(context, GradeWeights::default(), &redactor);
        if read(&found.source, &mut heuristic).is_err() {
            continue;
        }
        for grading in heuristic.into_gradings() {
            let GradingResult::Graded(record) = grading else { continue };
            let kind = record.session_kind;
            *outcomes
                .entry(format!("{} {kind} {}", record.details.agent, record.outcome))
                .or_default() += 1;
            let decided =
                matches!(record.outcome, TaskOutcome::ChecksPassed | TaskOutcome::Contradicted);
            assert!(!decided || !record.details.outcome_evidence.is_empty(), "{record:?}");
            if decided {
                eprintln!(
                    "{}: {:?}",
                    found.source.path().display(),
                    record.details.outcome_evidence
                );
            }
            if record.details.agent == "claude-code" {
                for error in &record.details.errors {
                    *causes.entry(error.cause.name()).or_default() += error.count;
                    if error.cause.name() == "unknown" || error.cause.name() == "command_failed" {
                        eprintln!("{} {:?} {}", error.cause, error.template, error.example);
                    }
                }
            }
        }
    }
    eprintln!("{causes:#?}\n{outcomes:#?}");
    let all: u64 = causes.values().sum();
    let unknown = causes.get("unknown").copied().unwrap_or_default();
    assert!(unknown * 5 <= all, "{unknown} of {all} errors have no cause");
}
