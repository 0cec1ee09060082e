//! The branch that skills are compared with, read by `git` without touching the work tree, the index
//! or a hook.

use std::io::{self, Read, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use selftest_config::Environment;
use tempfile::TempDir;

use crate::error::AppError;
use crate::skill_file::{MAX_BYTES, MAX_FILES, SKILL_FILE, SkillFileError, read_skill_text};
use selftest_harness::sut::skill::Skill;
use selftest_text::escape::terminal;
use selftest_text::one_line;

/// Variables that name the branch that a pull request goes to, in GitHub Actions, GitLab and
/// Bitbucket.
const TARGET_VARIABLES: [&str; 3] =
    ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "BITBUCKET_PR_DESTINATION_BRANCH"];
/// Branches that are tried if nothing names one.
const USUAL_BRANCHES: [&str; 5] = ["origin/HEAD", "origin/main", "main", "origin/master", "master"];

/// A git repository around a project.
#[derive(Debug)]
pub(super) struct GitRepository {
    /// Its root, without links.
    root: PathBuf,
}

/// The commit that skills are compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BaseCommit {
    /// The branch as it was named.
    pub name: String,
    /// The last commit that both branches have.
    pub commit: String,
}

/// A skill of the other branch, with the folder that it was written to.
#[derive(Debug, Clone)]
pub(super) struct BaseSkill {
    pub skill: Arc<Skill>,
    /// Removed with the last reference.
    _folder: Arc<TempDir>,
}

/// A skill as the other branch has it.
#[derive(Debug)]
pub(super) enum SkillOnBase {
    /// The branch does not have it.
    Missing,
    /// The branch has it, but it cannot be compared with.
    Unusable(BaseSkillError),
    /// It can be compared with.
    Usable(BaseSkill),
}

/// The reason why a skill of the other branch cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BaseSkillError {
    /// Its `SKILL.md` is refused.
    #[error("as it is on {branch}: {source}")]
    Skill {
        /// The other branch.
        branch: String,
        /// The reason.
        source: SkillFileError,
    },
    /// It has too many files, or too large ones.
    #[error("as it is on {branch}: it has more than {MAX_FILES} files or {} MiB", MAX_BYTES >> 20)]
    TooLarge {
        /// The other branch.
        branch: String,
    },
}

impl GitRepository {
    /// Returns the repository around a folder, if there is one and git can be used.
    pub(super) fn around(folder: &Path) -> Result<Self, AppError> {
        let output = run(folder, &["rev-parse", "--show-toplevel"], &[])?;
        let root = text(&output);
        let root = Path::new(root.trim_end_matches(['\n', '\r']));
        let root = root.canonicalize().map_err(|error| {
            AppError::usage(anyhow!("the git repository {}: {error}", root.display()))
        })?;
        Ok(Self { root })
    }

    /// Returns the last commit that HEAD shares with a branch: the named one, or the one that the CI
    /// system or git says. `None` if nothing names a branch and none of the usual ones exists.
    pub(super) fn base(
        &self,
        named: Option<&str>,
        environment: &Environment,
    ) -> Result<Option<BaseCommit>, AppError> {
        let target = TARGET_VARIABLES
            .iter()
            .find_map(|name| environment.variables.get(*name).filter(|branch| !branch.is_empty()));
        // The user means a name as it is written. CI names a branch of the remote, of which a local
        // one may be older.
        let candidates: Vec<String> = match (named, target) {
            (Some(name), _) => vec![name.to_owned(), format!("origin/{name}")],
            (None, Some(name)) => vec![format!("origin/{name}"), name.clone()],
            (None, None) => USUAL_BRANCHES.map(str::to_owned).to_vec(),
        };
        // git would read a name that starts with a dash as an option, such as `--output=FILE`.
        let exists = |name: &&String| {
            let commit = format!("{name}^{{commit}}");
            !name.starts_with('-')
                && self.git(&["rev-parse", "--verify", "--quiet", &commit]).is_ok()
        };
        let Some(found) = candidates.iter().find(exists) else {
            let Some(missing) = named.or(target.map(String::as_str)) else { return Ok(None) };
            let shown = terminal(missing, 100);
            return Err(AppError::usage(anyhow!("git knows no branch or commit `{shown}`"))
                .hint(Some(FETCH_ALL)));
        };
        let commit = self.git(&["merge-base", "HEAD", found]).map_err(|_| {
            let shown = terminal(found, 100);
            AppError::usage(anyhow!("HEAD and `{shown}` have no common commit here"))
                .hint(Some(FETCH_ALL))
        })?;
        let commit = text(&commit).trim().to_owned();
        Ok(Some(BaseCommit { name: one_line(named.unwrap_or(found), 100), commit }))
    }

    /// Returns all files that differ from a commit, those that git does not know yet among them.
    pub(super) fn changed_files(&self, base: &BaseCommit) -> Result<Vec<PathBuf>, AppError> {
        // With both names of a renamed file, and without programs that the repository configures.
        let diff = [
            "diff",
            "--name-only",
            "-z",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
            &base.commit,
            "--",
        ];
        let new = ["ls-files", "-z", "--others", "--exclude-standard"];
        let mut changed = Vec::new();
        for arguments in [&diff[..], &new[..]] {
            let names = self.git(arguments)?;
            let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
            changed.extend(names.map(|name| self.root.join(path_of(name))));
        }
        Ok(changed)
    }

    /// Reads a skill as it is in a commit.
    pub(super) fn skill_at(
        &self,
        base: &BaseCommit,
        folder: &Path,
    ) -> Result<SkillOnBase, AppError> {
        let Ok(below) = folder.strip_prefix(&self.root) else { return Ok(SkillOnBase::Missing) };
        let files = self.files_at(base, below)?;
        let bytes: u64 = files.iter().map(|file| file.size).sum();
        let branch = base.name.clone();
        // The limits apply before any content is read: a branch can hold files of any size.
        if files.len() > MAX_FILES || bytes > MAX_BYTES {
            return Ok(SkillOnBase::Unusable(BaseSkillError::TooLarge { branch }));
        }
        if !files.iter().any(|file| file.path == Path::new(SKILL_FILE)) {
            return Ok(SkillOnBase::Missing);
        }
        let written = self.write_files(&files, folder)?;
        let home = written.path().join(folder.file_name().unwrap_or("skill".as_ref()));
        Ok(match read_skill_text(&home.join(SKILL_FILE)) {
            Ok(skill) => SkillOnBase::Usable(BaseSkill {
                skill: Arc::new(skill),
                _folder: Arc::new(written),
            }),
            Err(source) => SkillOnBase::Unusable(BaseSkillError::Skill { branch, source }),
        })
    }

    /// Lists the files below a folder of the repository in a commit.
    fn files_at(&self, base: &BaseCommit, below: &Path) -> Result<Vec<StoredFile>, AppError> {
        let prefix = below.to_string_lossy();
        let mut arguments = vec!["ls-tree", "-r", "-z", "-l", "--full-tree", &base.commit, "--"];
        arguments.extend((!prefix.is_empty()).then_some(&*prefix));
        let listed = self.git(&arguments)?;
        let entries = listed.split(|byte| *byte == 0);
        Ok(entries.filter_map(|entry| StoredFile::parse(entry, below)).collect())
    }

    /// Writes files to a new folder outside of the repository, below the name of theirs.
    fn write_files(&self, files: &[StoredFile], folder: &Path) -> Result<TempDir, AppError> {
        let failed = |error: std::io::Error| {
            AppError::setup(anyhow!("cannot write a skill to compare with: {error}"))
        };
        let written =
            tempfile::Builder::new().prefix("selftest-base-").tempdir().map_err(failed)?;
        let home = written.path().join(folder.file_name().unwrap_or("skill".as_ref()));
        let ids: Vec<&str> = files.iter().flat_map(|file| [&*file.id, "\n"]).collect();
        let ids = ids.concat();
        let contents = run(&self.root, &["cat-file", "--batch"], ids.as_bytes())?;
        let mut rest = &contents[..];
        let mut found = Vec::with_capacity(files.len());
        for file in files {
            let content = next_blob(&mut rest).ok_or_else(|| {
                AppError::setup(anyhow!("git gave no content of {}", file.path.display()))
            })?;
            found.push((file, home.join(&file.path), content));
        }
        // A tree that git did not check may hold a link and a folder of one name, also by another
        // case of its letters. All folders are made before any link exists, and links come last, so
        // that no file is written through one to another place.
        for (_, path, _) in &found {
            path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
        }
        found.sort_by_key(|(file, ..)| matches!(file.kind, StoredKind::Link));
        for (file, path, content) in found {
            file.write(&path, content).map_err(failed)?;
        }
        Ok(written)
    }

    fn git(&self, arguments: &[&str]) -> Result<Vec<u8>, AppError> {
        run(&self.root, arguments, &[])
    }
}

/// What to do about a branch that a shallow clone does not have.
const FETCH_ALL: &str = "fetch it with its history: `fetch-depth: 0` of actions/checkout, or \
                         `git fetch --unshallow origin`";

/// A file in a commit.
struct StoredFile {
    id: String,
    /// Below the folder that was asked for.
    path: PathBuf,
    size: u64,
    kind: StoredKind,
}

enum StoredKind {
    Plain,
    Executable,
    Link,
}

impl StoredFile {
    /// Parses `100644 blob ID SIZE<TAB>PATH`. Submodules are left out.
    fn parse(entry: &[u8], below: &Path) -> Option<Self> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(&entry[..tab]).ok()?;
        let mut words = head.split_whitespace();
        let (mode, "blob", id, size) = (words.next()?, words.next()?, words.next()?, words.next()?)
        else {
            return None;
        };
        let path = path_of(&entry[tab + 1..]).strip_prefix(below).ok()?.to_owned();
        // A tree that git did not check may name `..` or a root.
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        let kind = match mode {
            "120000" => StoredKind::Link,
            "100755" => StoredKind::Executable,
            _ => StoredKind::Plain,
        };
        is_inside.then_some(Self { id: id.to_owned(), path, size: size.parse().ok()?, kind })
    }

    #[cfg(unix)]
    fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;
        use std::os::unix::fs::{OpenOptionsExt as _, symlink};
        if matches!(self.kind, StoredKind::Link) {
            return symlink(std::ffi::OsStr::from_bytes(content), path);
        }
        let mode = if matches!(self.kind, StoredKind::Executable) { 0o755 } else { 0o644 };
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode).open(path)?.write_all(content)
    }

    #[cfg(not(unix))]
    fn write(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        std::fs::write(path, content)
    }
}

/// Takes the next object off the output of `git cat-file --batch`.
fn next_blob<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let size = std::str::from_utf8(&rest[..end]).ok()?.rsplit(' ').next()?.parse::<usize>().ok()?;
    // A line break follows each object, besides the one of its header.
    let content = rest.get(end + 1..(end + 1).checked_add(size)?)?;
    *rest = rest.get(end + 2 + size..)?;
    Some(content)
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Time limit of a git command. Those that are run here read names and a few files.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns what was read up to an error.
fn read_all(source: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A pipe of a killed process ends like that of any other.
    let _ = source.map(|mut source| source.read_to_end(&mut bytes));
    bytes
}

/// Waits for a process. Kills it and returns `None` if it takes longer.
fn wait_within(child: &mut Child, most: Duration) -> io::Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > most {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs git in a folder and returns its output.
fn run(folder: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, AppError> {
    let mut command = Command::new("git");
    // A repository can name programs in its configuration, which git then starts: a monitor of the
    // file system on every `diff`, hooks on others. Inside a hook, the environment names the
    // repository of that hook, which need not be the one of this folder.
    command
        .args(["--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(folder)
        // Otherwise `diff` may refresh the index, which is the user's, under its lock.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_EXTERNAL_DIFF"] {
        command.env_remove(name);
    }
    let started = command.spawn();
    let mut child =
        started.map_err(|error| AppError::setup(anyhow!("cannot start git: {error}")))?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let first = arguments.first().copied().unwrap_or_default();
    // `cat-file --batch` answers while it reads. If nothing read its output until all input was
    // written, both sides would wait for each other once the pipes (64 KiB on Linux) were full.
    let (status, stdout, stderr) = std::thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        let stdout = scope.spawn(move || read_all(stdout));
        let stderr = scope.spawn(move || read_all(stderr));
        let status = wait_within(&mut child, PATIENCE);
        (status, stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default())
    });
    let status = status.map_err(|error| AppError::setup(anyhow!("git: {error}")))?;
    let Some(status) = status else {
        let (shown, seconds) = (folder.display(), PATIENCE.as_secs());
        let error = anyhow!("git {first} in {shown} did not end within {seconds} s");
        return Err(AppError::usage(error).hint(Some(
            "git waits for a pipe in the place of one of its files; `git status` shows if it works",
        )));
    };
    if status.success() {
        return Ok(stdout);
    }
    let said = terminal(&one_line(&text(&stderr), 300), 300);
    Err(AppError::usage(anyhow!("git {first} failed: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
        let done = Command::new("git").args(who).args(arguments).current_dir(folder).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    }

    #[cfg(unix)]
    #[test]
    fn a_process_that_does_not_end_is_killed() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert_eq!(wait_within(&mut child, Duration::from_millis(1)).unwrap(), None);
        assert!(child.try_wait().unwrap().is_some());
    }

    fn write(folder: &Path, path: &str, text: &str) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A repository whose branch changes one skill of two and adds a third.
    fn repository() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        git(&root, &["init", "-q"]);
        write(&root, "skills/ferry/SKILL.md", "old");
        write(&root, "skills/ferry/references/times.md", "10:40");
        write(&root, "skills/tide/SKILL.md", "tide");
        git(&root, &["add", "-A"]);
        git(&root, &["commit", "-qm", "one"]);
        git(&root, &["checkout", "-qb", "work"]);
        write(&root, "skills/ferry/SKILL.md", "new");
        git(&root, &["commit", "-qam", "two"]);
        write(&root, "skills/gull/SKILL.md", "gull");
        (folder, root)
    }

    #[test]
    fn the_other_branch_is_read_without_touching_this_one() {
        let (_folder, root) = repository();
        let repository = GitRepository::around(&root.join("skills")).unwrap();
        let base = repository.base(None, &Environment::default()).unwrap().unwrap();
        assert_eq!(base.name, "main");
        let changed = repository.changed_files(&base).unwrap();
        assert_eq!(
            changed,
            [root.join("skills/ferry/SKILL.md"), root.join("skills/gull/SKILL.md")]
        );
        let at = |name: &str| repository.skill_at(&base, &root.join("skills").join(name)).unwrap();
        let SkillOnBase::Usable(ferry) = at("ferry") else { panic!() };
        assert_eq!((&*ferry.skill.text, &*ferry.skill.name), ("old", "ferry"));
        let laid = ferry.skill.laid_for(&["claude".to_owned()]);
        assert_eq!(laid[1].path, ".claude/skills/ferry/references/times.md");
        assert!(matches!(at("gull"), SkillOnBase::Missing));
        assert_eq!(std::fs::read_to_string(root.join("skills/ferry/SKILL.md")).unwrap(), "new");
    }

    /// Returns the id that a command of git prints.
    #[cfg(unix)]
    fn id(root: &Path, arguments: &[&str], input: &str) -> String {
        text(&run(root, arguments, input.as_bytes()).unwrap()).trim().to_owned()
    }

    #[test]
    #[cfg(unix)]
    fn no_file_is_written_through_a_link() {
        let (_folder, root) = repository();
        let elsewhere = tempfile::tempdir().unwrap();
        let blob = |text: &str| id(&root, &["hash-object", "-w", "--stdin"], text);
        let link = blob(elsewhere.path().to_str().unwrap());
        let inner = id(&root, &["mktree"], &format!("100644 blob {}\tstolen\n", blob("x")));
        let skill = format!(
            "100644 blob {}\tSKILL.md\n120000 blob {link}\ta\n040000 tree {inner}\ta\n",
            blob("old")
        );
        let skill = id(&root, &["mktree"], &skill);
        let skills = id(&root, &["mktree"], &format!("040000 tree {skill}\tferry\n"));
        let tree = id(&root, &["mktree"], &format!("040000 tree {skills}\tskills\n"));
        let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let commit = id(&root, &[&who[..], &["commit-tree", &tree, "-m", "x"]].concat(), "");
        let base = BaseCommit { name: "x".to_owned(), commit };
        let repository = GitRepository::around(&root).unwrap();
        // The link cannot stand where the folder is.
        assert!(repository.skill_at(&base, &root.join("skills/ferry")).is_err());
        assert!(!elsewhere.path().join("stolen").exists());
    }

    #[test]
    fn an_unknown_branch_is_refused() {
        let (_folder, root) = repository();
        let repository = GitRepository::around(&root).unwrap();
        for name in ["nowhere", "--output=x"] {
            let error =
                repository.base(Some(name), &Environment::default()).unwrap_err().render(false);
            assert!(
                error.contains("git knows no branch") && error.contains("fetch-depth"),
                "{error}"
            );
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(GitRepository::around(empty.path()).is_err());
    }
}
