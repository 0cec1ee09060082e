//! Faults of everything around a run: for each the documented status and exit code, no process and no
//! file left behind. Servers that die are in `outage`, servers that answer nonsense in `bad_server`,
//! retries in `transport`, kills in `resume`.

mod clock;
#[cfg(feature = "postgres")]
mod database;
mod disk;
mod network;
mod processes;

use crate::run::Run;
use crate::workspace::{Workspace, files};

/// Properties of every end: no panic, no temporary file, no scratch folder.
#[track_caller]
fn leaves_nothing(run: &Run, workspace: &Workspace) {
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
    let temporary = |path: &&std::path::PathBuf| {
        path.extension().is_some_and(|kind| kind == "tmp" || kind == "probe")
    };
    let left = files(&workspace.project());
    assert_eq!(left.iter().find(temporary), None);
    let scratch = workspace.folder().join("tmp");
    let left: Vec<_> = std::fs::read_dir(scratch).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
