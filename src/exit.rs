//! Exit codes: the only place that knows them.

use selftest_app::{AppError, AppErrorKind, FinishedRun};
use selftest_harness::outcome::RunOutcome;

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Every case passed, or none is worse than in the baseline, or the command did what it was asked.
    Passed = 0,
    /// A case failed, or a reflection is weak.
    Failed = 1,
    /// Wrong usage or configuration.
    Usage = 2,
    /// No case failed, but not all have a verdict, or a limit of the run was reached.
    Inconclusive = 3,
    /// There was nothing to run.
    NothingRan = 4,
    /// A model, the system under test or a report folder could not be used, before the first case
    /// or in the middle of the run.
    Setup = 5,
    /// Stopped by the user.
    Interrupted = 130,
}

/// The table of exit codes for `--help` and the man page.
pub const TABLE: &str = "\
Exit codes:
  0    every case passed; with --gate no_regression: no case is worse than in the baseline
  1    a case failed (or the system under test failed, hung or broke out); with
       --gate no_regression: a case that passed in the baseline fails, each time it is run,
       or the cases together fail more often than the baseline shows
  2    wrong usage or configuration
  3    inconclusive: no case failed, but not all have a verdict, or --max-duration,
       --max-tokens or --max-cost was reached; with a baseline: what passed there has no
       verdict, a miss could not be run again, or nothing can be compared
  4    nothing ran
  5    a model, the system under test, a report folder or GitHub could not be used,
       or a model server was lost on the way: the rest of the cases is not run
  130  interrupted";

impl From<RunOutcome> for Exit {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Passed => Exit::Passed,
            RunOutcome::Failed => Exit::Failed,
            RunOutcome::Inconclusive => Exit::Inconclusive,
            RunOutcome::ModelUnavailable => Exit::Setup,
            RunOutcome::NothingRan => Exit::NothingRan,
            RunOutcome::Interrupted => Exit::Interrupted,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        std::process::ExitCode::from(exit as u8)
    }
}

impl From<AppErrorKind> for Exit {
    fn from(kind: AppErrorKind) -> Self {
        match kind {
            AppErrorKind::Usage => Exit::Usage,
            AppErrorKind::Setup => Exit::Setup,
            AppErrorKind::Undecided => Exit::Inconclusive,
        }
    }
}

impl Exit {
    /// Returns the exit code of a run; with `exit_zero`, failed and undecided cases do not count.
    pub(crate) fn of_run(run: &FinishedRun, exit_zero: bool) -> Result<Self, AppError> {
        Ok(Self::of_outcome(run.outcome()?, exit_zero))
    }

    fn of_outcome(outcome: RunOutcome, exit_zero: bool) -> Self {
        let exit = Self::from(outcome);
        let is_gated = matches!(exit, Self::Failed | Self::Inconclusive);
        if exit_zero && is_gated { Self::Passed } else { exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::ExitCode;

    #[test]
    fn codes_are_those_of_the_table() {
        for (exit, code) in [
            (Exit::Passed, 0),
            (Exit::Failed, 1),
            (Exit::Usage, 2),
            (Exit::Inconclusive, 3),
            (Exit::NothingRan, 4),
            (Exit::Setup, 5),
            (Exit::Interrupted, 130),
        ] {
            assert_eq!(ExitCode::from(exit), ExitCode::from(code), "{exit:?}");
            assert!(TABLE.contains(&format!("\n  {code:<4} ")), "{exit:?}");
        }
        for (kind, exit) in [
            (AppErrorKind::Usage, Exit::Usage),
            (AppErrorKind::Setup, Exit::Setup),
            (AppErrorKind::Undecided, Exit::Inconclusive),
        ] {
            assert_eq!(Exit::from(kind), exit);
        }
    }

    #[test]
    fn exit_zero_excuses_cases_alone() {
        for (outcome, exit, excused) in [
            (RunOutcome::Passed, Exit::Passed, Exit::Passed),
            (RunOutcome::Failed, Exit::Failed, Exit::Passed),
            (RunOutcome::Inconclusive, Exit::Inconclusive, Exit::Passed),
            (RunOutcome::ModelUnavailable, Exit::Setup, Exit::Setup),
            (RunOutcome::NothingRan, Exit::NothingRan, Exit::NothingRan),
            (RunOutcome::Interrupted, Exit::Interrupted, Exit::Interrupted),
        ] {
            assert_eq!(Exit::of_outcome(outcome, false), exit, "{outcome:?}");
            assert_eq!(Exit::of_outcome(outcome, true), excused, "{outcome:?}");
        }
    }
}
