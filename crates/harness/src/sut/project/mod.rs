//! The project folder: what a `chat` system under test is shown of it, and whether it changed.
//!
//! Reads only. What holds answers to the tests is never shown.

mod files;
mod hidden;
mod named;
mod snapshot;
mod workspace;

use std::path::{Path, PathBuf};

pub use files::{ProjectFile, read};
pub use hidden::Hidden;
pub use named::read_named;
pub use snapshot::Snapshot;
pub use workspace::Workspace;

/// Paths below the project that hold prompts, hints, rubrics, verdicts or reports.
pub const ANSWER_KEYS: &[&str] =
    &["reports", "docs/reports", "config/selftest.yaml", "config/suites", "prompts", ".selftest"];

/// Folders that tools fill, left out even where no `.gitignore` names them.
const GENERATED: &[&str] = &["target", "node_modules", "__pycache__"];

/// Paths and more paths, absolute or below `root`, as absolute ones.
fn barred(root: &Path, paths: &[&str], more: &[PathBuf]) -> Vec<PathBuf> {
    let mut barred: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
    for path in more {
        let path = root.join(path);
        // Both forms: the walk sees the path as written, a link leads to the other.
        barred.extend(path.canonicalize());
        barred.push(path);
    }
    barred
}

fn is_barred(path: &Path, barred: &[PathBuf]) -> bool {
    barred.iter().any(|barred| path.starts_with(barred))
}
