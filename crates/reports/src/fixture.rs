//! Handcrafted runs for the tests of reports: every way a case can end, with fixed IDs and times
//! and some hostile text.

pub(crate) use selftest_harness::fixtures::*;

use crate::document::{HostMachine, ReportDocument};
use crate::index::{RunEntry, RunIndex};
use crate::state::RunState;
use selftest_harness::event::{ExperimentRun, RunEvent, SuiteRun};
use selftest_harness::experiment::Arm;
use selftest_harness::outcome::{RunEnding, RunSummary, absolute_outcome};
use selftest_harness::sut::namespace::RunId;
use selftest_stats::score::{Strictness, Threshold};
use selftest_stats::wilson;

pub(crate) fn host() -> HostMachine {
    HostMachine { os: "linux".to_owned(), arch: "x86_64".to_owned() }
}

pub(crate) fn state(events: &[RunEvent]) -> RunState {
    let mut state = RunState::new(host());
    for event in events {
        state.fold(event);
    }
    state
}

pub(crate) fn rich_run() -> RunState {
    state(&rich_events())
}

/// Returns the document of the rich run.
pub(crate) fn document() -> ReportDocument {
    rich_run().document().unwrap()
}

/// Nine runs with rising and falling rates, one of them without a verdict, one killed; the tenth is
/// an arm of an experiment. The fifth to the seventh run a suite, the seventh with repeats; the first
/// replays a run.
pub(crate) fn runs() -> RunIndex {
    let results =
        [(2, 3), (3, 2), (3, 2), (4, 1), (0, 0), (9, 3), (14, 1), (12, 3), (20, 0), (1, 9)];
    let entries = results.into_iter().zip(1..).map(|((passed, failed), day)| {
        let decided = passed + failed;
        let summary = RunSummary {
            total: decided + 1,
            passed,
            failed,
            unscored: u32::from(day < 9),
            pass_rate: (decided > 0).then(|| f64::from(passed) / f64::from(decided)),
            pass_rate_interval: wilson(passed, decided),
            ..RunSummary::default()
        };
        RunEntry {
            run_id: RunId::try_from(format!("selftest-202602{day:02}-0930-r{day}")).unwrap(),
            started_at: at(&format!("2026-02-{day:02}T09:30:00Z")),
            outcome: (day != 4).then(|| absolute_outcome(&summary, RunEnding::Complete)),
            summary,
            judge: if day == 2 { HOSTILE.to_owned() } else { "ollama/qwen2.5:7b".to_owned() },
            generator: None,
            threshold: Threshold::effective(score(0.6), Strictness::new(0.7).unwrap()),
            experiment: (day == 10).then(|| ExperimentRun {
                arm: Arm::Control,
                other_run_id: RunId::try_from("selftest-20260210-0930-b".to_owned()).unwrap(),
                skill: HOSTILE.to_owned(),
                skill_digest: "ab".repeat(32),
            }),
            suite: (day == 1 || (5..8).contains(&day)).then(|| SuiteRun {
                path: if day == 1 { "reports/run.json" } else { "suites/<b>mail.yaml" }.to_owned(),
                digest: "cd".repeat(32),
                run_id: None,
                repeats: if day == 7 { 5 } else { 1 },
                replayed: day == 1,
                allowed_commands: Vec::new(),
            }),
            rejudged: None,
            usage: None,
        }
    });
    let mut entries: Vec<RunEntry> = entries.collect();
    entries.reverse();
    RunIndex { entries, foreign: 1, left_out: 0 }
}
