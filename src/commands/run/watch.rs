//! `--watch`: runs again whenever the configuration, the prompts, the suite or the files of the
//! program under test change.

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use selftest_app::{AppError, Project, SKILL_FILE};
use selftest_checks::evals::folder;
use selftest_checks::evals::folder::SkillFolder;
use selftest_text::wording::plural;

use super::agent_files::AgentFiles;
use crate::args::{GlobalArgs, RunArgs};
use crate::exit::Exit;
use crate::ui;
use crate::ui::{eprint, interruption};

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
