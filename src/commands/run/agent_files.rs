//! The files of the program under test, for `--watch`: scripts that its command line names, and the
//! folders that they lie in.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum depth of a watched folder.
const MAX_DEPTH: usize = 6;

/// Maximum number of watched files.
const MAX_FILES: usize = 5_000;

/// Names of folders that hold what tools made and no source of an agent.
const MADE: [&str; 6] = ["node_modules", "target", "__pycache__", "venv", "dist", "build"];

/// The files and folders of a program under test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AgentFiles {
    /// Scripts that the command line names.
    scripts: BTreeSet<PathBuf>,
    /// The folders that they lie in.
    folders: BTreeSet<PathBuf>,
    /// Folders and files that runs write.
    written: Vec<PathBuf>,
}

impl AgentFiles {
    /// Finds the files that a command line names. Paths count from the project. `written` are files
    /// and folders that a run writes: each run would start another.
    pub(super) fn of(run: &[String], project: &Path, written: Vec<PathBuf>) -> Self {
        let mut found = Self { written, ..Self::default() };
        let mut is_module = false;
        for (position, word) in run.iter().enumerate() {
            if std::mem::replace(&mut is_module, word == "-m") {
                // A module of Python: `-m agent.main`.
                let module = project.join(word.replace('.', "/"));
                found.add(&module.with_extension("py"));
                found.add(&module);
                continue;
            }
            // A path may be the value of a flag: `--script=agent.js`.
            let word = match word.split_once('=') {
                Some((flag, value)) if flag.starts_with('-') => value,
                _ => word,
            };
            let path = project.join(word);
            // An interpreter is no part of the agent; a program without a slash is on the PATH.
            let is_program = position == 0;
            let is_own = word.contains(['/', '\\']) && path.starts_with(project);
            if !word.is_empty() && !word.starts_with('-') && (!is_program || is_own) {
                found.add(&path);
            }
        }
        found
    }

    fn add(&mut self, path: &Path) {
        // `node .` names a folder, and a path may have `..` in it.
        let Ok(path) = fs::canonicalize(path) else { return };
        if path.is_dir() {
            self.folders.insert(path);
        } else if let Some(folder) = path.parent() {
            self.folders.insert(folder.to_owned());
            self.scripts.insert(path);
        }
    }

    /// Calls `see` with every file, at most [`MAX_FILES`].
    pub(super) fn each(&self, mut see: impl FnMut(&Path)) {
        let mut left = MAX_FILES;
        for script in &self.scripts {
            see(script);
        }
        for folder in &self.folders {
            self.each_in(folder, MAX_DEPTH, &mut left, &mut see);
        }
    }

    fn each_in(&self, folder: &Path, depth: usize, left: &mut usize, see: &mut impl FnMut(&Path)) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_made = name.starts_with('.') || MADE.contains(&&*name);
            if is_made || self.written.iter().any(|written| path.starts_with(written)) {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth > 1 => self.each_in(&path, depth - 1, left, see),
                Ok(kind) if kind.is_file() && *left > 0 => {
                    *left -= 1;
                    see(&path);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_their_folders_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().canonicalize().unwrap();
        for file in [
            "bot/main.py",
            "bot/tools/search.py",
            "bot/.cache/a",
            "bot/__pycache__/main.pyc",
            "bot/out/run.json",
            "run.sh",
            "pkg/agent/__main__.py",
            "reports/a.json",
        ] {
            let path = project.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let written = vec![project.join("bot/out"), project.join("reports")];
        let files = |run: &[&str]| {
            let run: Vec<String> = run.iter().map(|word| (*word).to_owned()).collect();
            let found = AgentFiles::of(&run, &project, written.clone());
            let mut seen = BTreeSet::new();
            found.each(|path| {
                let path = path.strip_prefix(&project).unwrap();
                seen.insert(path.to_string_lossy().replace('\\', "/"));
            });
            seen.into_iter().collect::<Vec<_>>()
        };
        let bot = ["bot/main.py", "bot/tools/search.py"];
        assert_eq!(files(&["python3", "bot/main.py", "--verbose"]), bot);
        assert_eq!(files(&["node", "--import=bot/main.py"]), bot);
        assert_eq!(files(&["python3", "-m", "pkg.agent"]), ["pkg/agent/__main__.py"]);
        let all = ["bot/main.py", "bot/tools/search.py", "pkg/agent/__main__.py", "run.sh"];
        assert_eq!(files(&["./run.sh"]), all);
        let none: [&str; 0] = [];
        assert_eq!(files(&["my-agent", "serve", "--port=1"]), none);
    }
}
