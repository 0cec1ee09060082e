//! Suggests a single next step after a first run that did not pass. Pure.

use selftest_text::escape;
use selftest_text::wording::shell_quote;

use super::files::ReportPaths;
use selftest_harness::event::{RunHeader, RunNotice};
use selftest_harness::outcome::{RunOutcome, RunSummary};

/// The next thing worth doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Configure the system under test: so far nothing of the project was tested.
    SetUp {
        /// Path of the configuration, if it exists.
        config: Option<String>,
    },
    /// Choose a judge that is good enough.
    FindJudge,
    /// Read the reasons, change something, rerun the same cases.
    ReadReport,
}

impl NextStep {
    /// Returns the next step after a run with this outcome; `None` if it passed or was cut short.
    pub fn after(header: &RunHeader, summary: &RunSummary, outcome: RunOutcome) -> Option<Self> {
        if !matches!(outcome, RunOutcome::Failed | RunOutcome::Inconclusive) {
            return None;
        }
        let is_unfit = |notice: &RunNotice| {
            matches!(notice, RunNotice::UnfitJudge { .. } | RunNotice::UnfitWithoutReference { .. })
        };
        let set_up = header.notices.iter().find_map(|notice| match notice {
            RunNotice::BuiltInAssistant { config } | RunNotice::ExampleAgent { config } => {
                Some(Self::SetUp { config: config.clone() })
            }
            RunNotice::UnfitJudge { .. }
            | RunNotice::UnfitWithoutReference { .. }
            | RunNotice::Unsandboxed { .. } => None,
        });
        let find_judge = summary.unscored > 0 && header.notices.iter().any(is_unfit);
        // Without a configured agent, nothing of the project was tested: that comes first.
        Some(set_up.unwrap_or(if find_judge { Self::FindJudge } else { Self::ReadReport }))
    }

    /// Formats the step as one line with a line break.
    pub fn line(&self, paths: &ReportPaths) -> String {
        match self {
            Self::SetUp { config: Some(config) } => {
                let config = escape::terminal(config, 400);
                format!("next: name your agent under `sut` in {config}, then run it again\n")
            }
            Self::SetUp { config: None } => {
                "next: `selftest init` looks at this project and writes a configuration for it\n"
                    .to_owned()
            }
            Self::FindJudge => {
                "next: take a judge that can: `selftest judge model pull qwen3-1.7b`, then \
                                `selftest --judge-model embedded/qwen3-1.7b`\n"
                    .to_owned()
            }
            Self::ReadReport => {
                let report =
                    shell_quote(&escape::terminal(&paths.markdown.display().to_string(), 4_096));
                format!(
                    "next: {report} says why; change the agent or the case, then `selftest compare --replay \
                     latest` runs the same cases again and compares\n"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::fixture;

    #[test]
    fn one_thing_by_what_stands_in_the_way() {
        let cases = fixture::rich_cases();
        let (summary, outcome) = fixture::fold(&cases);
        let unfit = RunNotice::UnfitJudge { model: "m".into(), measured: "AUC 0.5".into() };
        let step = |notices: Vec<RunNotice>, summary: &RunSummary, outcome| {
            let header = RunHeader { notices, ..fixture::header(&cases) };
            NextStep::after(&header, summary, outcome)
        };
        let all = vec![unfit.clone(), RunNotice::BuiltInAssistant { config: None }];
        assert_eq!(step(all, &summary, outcome), Some(NextStep::SetUp { config: None }));
        assert_eq!(step(vec![unfit.clone()], &summary, outcome), Some(NextStep::FindJudge));
        let decided = RunSummary { unscored: 0, ..summary.clone() };
        assert_eq!(step(vec![unfit.clone()], &decided, outcome), Some(NextStep::ReadReport));
        assert_eq!(step(Vec::new(), &summary, outcome), Some(NextStep::ReadReport));
        assert_eq!(step(vec![unfit], &summary, RunOutcome::Passed), None);
        assert_eq!(step(Vec::new(), &summary, RunOutcome::Interrupted), None);
        let markdown = PathBuf::from("my docs/run.md");
        let paths = ReportPaths { json: PathBuf::from("run.json"), markdown };
        let line = NextStep::ReadReport.line(&paths);
        assert!(
            line.starts_with("next: 'my docs/run.md' says why") && line.ends_with('\n'),
            "{line}"
        );
    }
}
