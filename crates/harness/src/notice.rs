//! Warnings that are shown before the numbers of a run. Plain data and its wording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A caveat without which a reader could misinterpret the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunNotice {
    /// The run tested the built-in assistant and not the user's own agent.
    BuiltInAssistant {
        /// The configuration file, if there is one.
        config: Option<String>,
    },
    /// The run tested the example agent and not the user's own.
    ExampleAgent {
        /// The configuration file, if there is one.
        config: Option<String>,
    },
    /// Programs under test ran without a sandbox, or with only part of it.
    Unsandboxed {
        /// The reason.
        why: String,
    },
    /// The judge cannot tell good answers from bad ones.
    UnfitJudge {
        /// Full name of the model.
        model: String,
        /// Result of the judge's fitness measurement.
        measured: String,
    },
    /// The judge measured as unfit for cases without a reference answer, and the run has such
    /// cases.
    UnfitWithoutReference {
        /// Full name of the model.
        model: String,
        /// Result of the judge's fitness measurement.
        measured: String,
    },
}

impl RunNotice {
    /// Returns the notice as one sentence for the user.
    pub fn sentence(&self) -> String {
        match self {
            Self::BuiltInAssistant { config } => {
                let how = match config {
                    Some(config) => format!("name yours under `sut` in {config}"),
                    None => "`selftest init` sets yours up".to_owned(),
                };
                format!("this run tested the built-in assistant, not your agent: {how}")
            }
            Self::ExampleAgent { config } => {
                let file = config.as_deref().unwrap_or("config/selftest.yaml");
                format!(
                    "this run tests the example agent inside selftest, which has two planted faults \
                     (docs/example-agent.md); test your own: `selftest init`, `--sut \"COMMAND\"`, or \
                     `sut` in {file}"
                )
            }
            Self::Unsandboxed { why } => format!("UNSANDBOXED: {why}"),
            Self::UnfitJudge { model, measured } => format!(
                "{model} is unfit to judge ({measured}): only what needs no judge was decided"
            ),
            Self::UnfitWithoutReference { model, measured } => format!(
                "{model} is unfit to judge cases without a reference answer ({measured}): of those \
                 only what needs no judge was decided"
            ),
        }
    }
}
