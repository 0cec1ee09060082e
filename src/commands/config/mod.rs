//! `selftest config check|show`.

mod schema;

use clap::Subcommand;
use selftest_app::AppError;
use selftest_config::{self as config, show};
use selftest_text::wording::plural;

use crate::args::{GlobalArgs, RunArgs};
use crate::commands::config::schema::SchemaName;
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, print};

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
        ConfigAction::Schema { which } => return schema::execute(*which, global),
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
