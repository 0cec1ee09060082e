//! `selftest config check|show`, and `selftest config schema config|report|verdict|suite|baseline`.

use clap::{Subcommand, ValueEnum};
use selftest_app::AppError;
use selftest_config::{self as config, show};
use selftest_harness::gate::baseline::Baseline;
use selftest_harness::judge;
use selftest_reports as report;
use selftest_text::wording::plural;
use serde_json::json;

use crate::args::{GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::ui::{self, eprint, print};

/// Actions on the configuration.
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Check the configuration and report all errors at once
    Check(Box<RunArgs>),
    /// Print every value and its source
    Show(Box<RunArgs>),
    /// Print a JSON Schema
    Schema {
        /// Which one
        #[arg(value_enum, default_value_t)]
        which: SchemaName,
    },
}

pub(super) fn execute(action: &ConfigAction, global: &GlobalArgs) -> Result<Exit, AppError> {
    let (args, shown) = match action {
        ConfigAction::Check(args) => (args, false),
        ConfigAction::Show(args) => (args, true),
        ConfigAction::Schema { which } => return print_schema(*which, global),
    };
    let project = ui::open(global)?;
    let resolved = project.load(args.settings().flags())?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    if shown {
        // `sut.command.environment` may hold a key.
        print(&project.redactor(&resolved).apply(&show(&resolved)))?;
        return Ok(Exit::Passed);
    }
    let path = resolved.path.as_ref();
    let path = path.map_or("defaults (no file)".to_owned(), |path| path.display().to_string());
    let count = resolved.config.scenarios.len();
    print(&format!("{path}: valid, {}\n", plural(count as u64, "scenario")))?;
    if let Some(path) = &args.suite {
        let path = project.shown_path(path);
        let suite = config::suite::load(&path)?;
        let count = plural(suite.cases.len() as u64, "case");
        print(&format!("{}: valid, {count}, digest {}\n", path.display(), suite.digest()))?;
    }
    Ok(Exit::Passed)
}

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

fn print_schema(which: SchemaName, global: &GlobalArgs) -> Result<Exit, AppError> {
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
