//! `selftest config check|show`.

use super::context::Project;
use super::failure::Failure;
use super::{eprint, print};
use crate::cli::{ConfigAction, GlobalArgs};
use crate::config::show;
use crate::exit::Exit;

pub(super) fn execute(action: ConfigAction, global: &GlobalArgs) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let resolved = project.load(Vec::new())?;
    for warning in &resolved.warnings {
        eprint(&format!("warning: {warning}\n"));
    }
    match action {
        ConfigAction::Check => {
            let path = resolved.path.as_ref();
            let path =
                path.map_or("defaults (no file)".to_owned(), |path| path.display().to_string());
            let count = resolved.config.scenarios.len();
            let plural = if count == 1 { "scenario" } else { "scenarios" };
            print(&format!("{path}: right, {count} {plural}\n"))?;
        }
        ConfigAction::Show => print(&show(&resolved))?,
    }
    Ok(Exit::Passed)
}
