//! `selftest sessions`: finds recorded sessions, lists them, prints one.

mod list;
mod show;

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::context::Project;
use super::failure::Failure;
use super::{eprint, print, since};
use crate::cli::{GlobalArgs, SessionArgs, SessionsAction};
use crate::exit::Exit;
use list::list;
use selftest_sessions::Found;
use selftest_text::redact::Redactor;
use show::{Form, show};

pub(super) fn execute(
    action: &SessionsAction,
    args: &SessionArgs,
    as_json: bool,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let roots = roots(&project, args)?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    match action {
        SessionsAction::List { limit } => list(&roots, *limit, args, as_json, &redactor),
        SessionsAction::Show { session, full } => {
            let path = project.path(Path::new(session));
            let prices = project.load(Vec::new())?.config.prices;
            let form = Form { full: *full, as_json, prices };
            show(session, &path, &roots, &form, &redactor)
        }
    }
}

/// Where sessions are looked for: the flags, else the configuration, else the agents' homes.
/// Paths of the command line count from the project folder, as all others do.
pub(super) fn roots(project: &Project, args: &SessionArgs) -> Result<Vec<PathBuf>, Failure> {
    if !args.sources.is_empty() {
        for source in &args.sources {
            let path = project.path(source);
            path.symlink_metadata().map_err(|error| {
                let shown = source.display();
                Failure::usage(anyhow!("--source {shown}: {error}"))
            })?;
        }
        return Ok(args.sources.iter().map(|source| project.path(source)).collect());
    }
    let configured = project.load(Vec::new())?.config.grade.sources;
    if !configured.is_empty() {
        return Ok(configured.iter().map(|source| project.path(source)).collect());
    }
    let variables = &project.environment.variables;
    let variable = |name: &str| variables.get(name).map(Into::into);
    let home = variables.get("HOME").map(PathBuf::from);
    let homes =
        selftest_sessions::homes(variable, home.as_deref()).into_iter().map(|home| home.path);
    // Hardly anybody uses all agents.
    Ok(homes.filter(|path| path.exists()).collect())
}

fn find(roots: &[PathBuf]) -> Vec<Found> {
    selftest_sessions::find(roots, |problem| eprint(&format!("warning: {problem}\n")))
}

/// Says where nothing was found.
pub(super) fn nothing_found(roots: &[PathBuf]) {
    let mut text = match roots {
        [] => "none of the known agents keeps sessions here\n".to_owned(),
        _ => "no recorded session was found in\n".to_owned(),
    };
    for root in roots {
        text += &format!("  {}\n", root.display());
    }
    text += "hint: name a file or folder with --source, or grade.sources in the configuration\n";
    eprint(&text);
}
