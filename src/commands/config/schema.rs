//! `selftest config schema config|report|verdict|suite|baseline`.

use clap::ValueEnum;
use selftest_app::AppError;
use selftest_config as config;
use selftest_harness::gate::baseline::Baseline;
use selftest_harness::judge;
use selftest_reports as report;
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::Exit;
use crate::ui;
use crate::ui::print;

/// The published schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum SchemaName {
    /// Of config/selftest.yaml
    #[default]
    Config,
    /// Of the JSON report of a run
    Report,
    /// Of a judge's reply, for the configured rubric
    Verdict,
    /// Of a suite file
    Suite,
    /// Of selftest-baseline.json
    Baseline,
}

pub(super) fn execute(which: SchemaName, global: &GlobalArgs) -> Result<Exit, AppError> {
    let schema = match which {
        SchemaName::Config => config::schema().clone(),
        SchemaName::Suite => config::suite::schema().clone(),
        SchemaName::Baseline => json!(schemars::schema_for!(Baseline)),
        SchemaName::Report => report::document::schema(),
        SchemaName::Verdict => {
            let resolved = ui::open(global)?.load(Vec::new())?;
            judge::verdict::schema(&resolved.rubric, 0)
        }
    };
    print(&format!("{schema:#}\n"))?;
    Ok(Exit::Passed)
}
