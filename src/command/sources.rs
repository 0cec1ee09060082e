//! `--source`: the folders that are scanned for recorded sessions.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::cli::SessionArgs;
use crate::ui::eprint;
use selftest_app::AppError;
use selftest_app::Project;
use selftest_sessions::AgentHome;

/// Returns the folders to scan: the flags, else the configuration, else the agents' homes.
/// Paths of the command line count from the project folder, as all others do.
pub(super) fn roots(project: &Project, args: &SessionArgs) -> Result<Vec<PathBuf>, AppError> {
    if !args.sources.is_empty() {
        for source in &args.sources {
            let path = project.path(source);
            path.symlink_metadata().map_err(|error| {
                let shown = source.display();
                AppError::usage(anyhow!("--source {shown}: {error}"))
            })?;
        }
        return Ok(args.sources.iter().map(|source| project.path(source)).collect());
    }
    let configured = project.load(Vec::new())?.config.grade.sources;
    if !configured.is_empty() {
        return Ok(configured.iter().map(|source| project.path(source)).collect());
    }
    let homes = homes(project).into_iter().map(|home| home.path);
    // Few people use all agents.
    Ok(homes.filter(|path| path.exists()).collect())
}

/// Where the agents keep their sessions, there or not.
pub(super) fn homes(project: &Project) -> Vec<AgentHome> {
    let variables = &project.environment.variables;
    let variable = |name: &str| variables.get(name).map(Into::into);
    let home = variables.get("HOME").map(PathBuf::from);
    selftest_sessions::agent_homes(variable, home.as_deref())
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
