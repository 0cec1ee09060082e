//! Warnings that a reader needs before the numbers of a run. Plain data and its words; decides nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that a run is not, though its reader may take it for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// Nothing of the project was tested, but the assistant that comes with this program.
    BuiltInAssistant {
        /// The configuration, where there is one.
        config: Option<String>,
    },
    /// Programs under test ran without a sandbox, or without all of it.
    Unsandboxed {
        /// Why.
        why: String,
    },
    /// The judge cannot tell good answers from bad ones.
    UnfitJudge {
        /// Its full name.
        model: String,
        /// How it was measured.
        measured: String,
    },
    /// The judge's measurement says that it cannot judge answers to cases without a reference, and some
    /// have none.
    UnfitWithoutReference {
        /// Its full name.
        model: String,
        /// How it was measured.
        measured: String,
    },
}

impl Notice {
    /// For people, in one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::BuiltInAssistant { config } => {
                let how = match config {
                    Some(config) => format!("name yours under `sut` in {config}"),
                    None => "`selftest init` sets yours up".to_owned(),
                };
                format!("this run tested the built-in assistant, not your agent: {how}")
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
