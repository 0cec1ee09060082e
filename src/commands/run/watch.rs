//! `--watch`: runs again whenever the configuration, the prompts, the suite or the files of the
//! program under test change: scripts that its command line names, and the folders that they lie in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use selftest_app::{AppError, Project, SKILL_FILE};
use selftest_checks::evals::folder::{self, SkillFolder};
use selftest_text::wording::plural;

use crate::args::{GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::ui::{self, eprint, interruption};

/// Time between two scans.
const INTERVAL: Duration = Duration::from_millis(300);

/// Maximum depth of the prompts folder.
const MAX_DEPTH: usize = 4;

/// Files with their modification time and size.
type Seen = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The watched files. Never a folder that runs write to: each run would start another.
struct Watched {
    config: PathBuf,
    prompts: PathBuf,
    suite: Option<PathBuf>,
    agent: AgentFiles,
}

impl Watched {
    /// Finds the files of the program under test. A configuration with a mistake keeps those of the
    /// one before.
    fn find_agent(&mut self, project: &Project, args: &RunArgs) {
        // An invalid configuration keeps the files of the last valid one.
        let Ok(resolved) = project.load(args.settings().flags()) else { return };
        let (json, markdown) = project.report_folders(&resolved);
        let requests = project.report_requests(&resolved);
        let requested = requests.iter().filter_map(|request| request.path().map(Path::to_owned));
        let record = args.record.as_ref().map(|folder| project.path(folder));
        let written = [json, markdown].into_iter().chain(requested).chain(record);
        let written = written.map(|path| real_path(&path)).collect();
        let run = resolved.config.sut.program().map(|program| &program.run[..]);
        self.agent = AgentFiles::of(run.unwrap_or_default(), &project.folder, written);
    }

    fn look(&self) -> Seen {
        let mut seen = Seen::new();
        self.agent.each(|path| add_file(&mut seen, path));
        add_file(&mut seen, &self.config);
        add_folder(&mut seen, &self.prompts, MAX_DEPTH);
        match &self.suite {
            Some(suite) if suite.is_dir() => {
                for file in folder::find(suite) {
                    add_file(&mut seen, &SkillFolder::locate(&file).skill.join(SKILL_FILE));
                    add_file(&mut seen, &file);
                }
            }
            Some(suite) => add_file(&mut seen, suite),
            None => {}
        }
        seen
    }

    /// Returns after a file has changed and writing has stopped.
    async fn changed(&self, then: &Seen) {
        let mut last = then.clone();
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = self.look();
            // Unchanged for one interval: an editor or a build may write several files, or one in
            // parts.
            if now != *then && now == last {
                return;
            }
            last = now;
        }
    }
}

/// Returns the one name of a file or folder, which need not exist yet.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (fs::canonicalize(&absolute), absolute.parent(), absolute.file_name()) {
        (Ok(real), _, _) => real,
        // The file may not exist yet. Its folder is resolved, so that both spellings compare equal.
        (Err(_), Some(folder), Some(name)) => real_path(folder).join(name),
        (Err(_), _, _) => absolute,
    }
}

fn add_file(seen: &mut Seen, path: &Path) {
    if let Ok(metadata) = fs::metadata(path) {
        seen.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
    }
}

fn add_folder(seen: &mut Seen, path: &Path, depth: usize) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 1 => add_folder(seen, &entry.path(), depth - 1),
            Ok(kind) if kind.is_file() => add_file(seen, &entry.path()),
            _ => {}
        }
    }
}

/// Runs, and runs again after each change, until interrupted. An error in a file is shown, and fixing
/// it is a change.
pub(super) async fn execute(args: &RunArgs, global: &GlobalArgs) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let mut watched = Watched {
        config: real_path(&project.config_file()),
        prompts: real_path(&project.folder.join("prompts")),
        suite: args.suite.as_ref().map(|path| real_path(&project.path(path))),
        agent: AgentFiles::default(),
    };
    // One for all runs: between two of them no interrupt is lost.
    let interrupted = interruption()?;
    tokio::pin!(interrupted);
    loop {
        watched.find_agent(&project, args);
        // Changes during a run count for the next one.
        let then = watched.look();
        let exit = match Box::pin(super::once(args, global)).await {
            Ok(exit) => exit,
            // A mistake in the configuration is what is being edited, so watching continues.
            Err(failure) => {
                eprint(&failure.render(std::io::stderr().is_terminal()));
                failure.kind().into()
            }
        };
        if exit == Exit::Interrupted {
            return Ok(exit);
        }
        let files = plural(then.len() as u64, "file");
        eprint(&format!("\nwatching {files}: a change runs it again, Ctrl-C ends it\n"));
        tokio::select! {
            () = watched.changed(&then) => {}
            () = &mut interrupted => return Ok(Exit::Passed),
        }
    }
}

/// Maximum depth of a watched folder.
const MAX_AGENT_DEPTH: usize = 6;

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
            self.each_in(folder, MAX_AGENT_DEPTH, &mut left, &mut see);
        }
    }

    fn each_in(&self, folder: &Path, depth: usize, left: &mut usize, see: &mut impl FnMut(&Path)) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_made = name.starts_with('.') || MADE.contains(&&*name);
            // A report of the run would start the next one.
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
