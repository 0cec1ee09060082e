//! `selftest config check|show`.

use super::context::{Project, flags};
use super::failure::Failure;
use super::{eprint, print};
use crate::cli::{ConfigAction, GlobalArgs};
use crate::exit::Exit;
use selftest_config::{self as config, show};
use selftest_text::wording::plural;

pub(super) fn execute(action: &ConfigAction, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let (ConfigAction::Check(args) | ConfigAction::Show(args)) = action;
    let resolved = project.load(flags(args))?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    match action {
        ConfigAction::Check(_) => {
            let path = resolved.path.as_ref();
            let path =
                path.map_or("defaults (no file)".to_owned(), |path| path.display().to_string());
            let count = resolved.config.scenarios.len();
            print(&format!("{path}: right, {}\n", plural(count as u64, "scenario")))?;
            if let Some(path) = &args.suite {
                let path = project.shown_path(path);
                let suite = config::suite::load(&path)?;
                let count = plural(suite.cases.len() as u64, "case");
                print(&format!("{}: right, {count}, digest {}\n", path.display(), suite.digest()))?;
            }
        }
        ConfigAction::Show(_) => {
            // `sut.command.environment` may hold a key.
            print(&project.redactor(&resolved).apply(&show(&resolved)))?;
        }
    }
    Ok(Exit::Passed)
}
