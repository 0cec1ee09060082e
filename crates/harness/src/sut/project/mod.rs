//! The project folder: selects what a system under test may see and detects changes. Read-only.
//!
//! Files that contain answers to the tests are never shown.

mod anchored;
mod files;
mod hidden;
mod workspace;

use std::path::{Path, PathBuf};

pub use anchored::{AnchoredFolder, remove_tree};
pub use files::{ProjectFile, read_anchored_file, read_named_file, read_project_files};
pub use hidden::HiddenFiles;
pub use workspace::{ProjectSnapshot, Workspace};

/// Paths below the project that contain prompts, hints, rubrics, verdicts or reports.
pub const ANSWER_KEYS: &[&str] =
    &["reports", "docs/reports", "config/selftest.yaml", "config/suites", "prompts", ".selftest"];

/// Folders filled by tools, skipped even if no `.gitignore` lists them.
const GENERATED: &[&str] = &["target", "node_modules", "__pycache__"];

/// Resolves both lists of paths, absolute or below `root`, to absolute paths.
fn barred_paths(root: &Path, paths: &[&str], more: &[PathBuf]) -> Vec<PathBuf> {
    let mut barred: Vec<PathBuf> = paths.iter().map(|path| root.join(path)).collect();
    for path in more {
        let path = root.join(path);
        // Both forms are needed: the walk sees the path as written, while a link resolves to the
        // canonical one.
        barred.extend(path.canonicalize());
        barred.push(path);
    }
    barred
}

fn is_barred(path: &Path, barred: &[PathBuf]) -> bool {
    barred.iter().any(|barred| path.starts_with(barred))
}
