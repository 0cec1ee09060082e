//! Finds further files of a project that systems under test must not read: copies of answer keys,
//! recordings, git objects that contain them, keys and passwords. Read-only.
//!
//! Files are recognised by name, by a few words at their start, and by identical content. A
//! reworded answer key under another name is not found.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use selftest_text::digest;
use selftest_text::file::{open_regular, read_bounded};

use super::GENERATED;

/// Maximum number of project entries to inspect.
const MAX_ENTRIES: usize = 100_000;

/// Maximum number of bytes to read from the start of a file.
const MAX_BEGINNING: u64 = 4096;

/// Maximum size in bytes of an answer key whose copies are found by content.
const MAX_KEY: u64 = 8 << 20;

/// Folders of installed packages. They are large and contain certificates of their own.
const PACKAGES: &[&str] = &[".venv", "venv", "site-packages", ".tox", ".nox", "vendor"];

/// Folders that contain keys, wherever they are.
const SECRET_FOLDERS: &[&str] =
    &[".ssh", ".aws", ".azure", ".gnupg", ".docker", ".kube", ".gcloud", ".terraform.d"];

/// Files that contain keys, wherever they are.
const SECRET_FILES: &[&str] = &[
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".vault-token",
    ".dockercfg",
    ".boto",
    ".s3cfg",
    "application_default_credentials.json",
    "credentials.json",
    "client_secret.json",
    "kubeconfig",
    "secrets.json",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "terraform.tfstate",
];

/// Suffixes of files that contain keys.
const SECRET_ENDS: &[&str] =
    &[".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk", ".asc.key", ".age-key"];

/// Prefixes of files that contain keys, unless they end in `.pub`.
const SECRET_BEGINNINGS: &[&str] =
    &["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "service-account", "service_account"];

/// Suffixes of `.env.…` files that are public templates.
const EXAMPLES: &[&str] = &[".example", ".sample", ".template", ".dist", ".defaults"];

/// Parts of the `.git` folder that contain commits, addresses with passwords, or names and digests
/// of hidden files.
const GIT: &[&str] = &[
    "objects",
    "config",
    "config.worktree",
    "lfs",
    "modules",
    "worktrees",
    "logs",
    "annex",
    "index",
    "index.lock",
    "packed-refs",
    "info",
    "rr-cache",
    "rebase-apply",
    "rebase-merge",
    "sequencer",
    "COMMIT_EDITMSG",
    "MERGE_MSG",
    "SQUASH_MSG",
    "FETCH_HEAD",
    "ORIG_HEAD",
    "fsmonitor--daemon",
    "gitk.cache",
];

/// Prefix of the parts of a split index.
const SHARED_INDEX: &str = "sharedindex.";

/// Folders of other version control, all of which keep names and contents.
const OTHER_STORES: &[&str] = &[".hg", ".svn", ".jj", ".bzr", ".pijul", "_darcs", "CVS"];

/// Words that mark a file name as a copy.
const COPY_WORDS: &[&str] =
    &["bak", "old", "orig", "copy", "backup", "save", "saved", "prev", "previous", "tmp", "swp"];

/// Absolute paths of hidden files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HiddenFiles {
    /// Copies of answers, and recordings that contain them.
    pub answers: Vec<PathBuf>,
    /// Keys, passwords, sockets, and git objects.
    pub secrets: Vec<PathBuf>,
}

/// The answer keys that copies are recognised by.
#[derive(Default)]
struct AnswerKeyIndex {
    names: HashSet<String>,
    /// Digests by size.
    contents: HashMap<u64, HashSet<String>>,
}

impl HiddenFiles {
    /// Scans a project whose answer keys are `protected`: absolute paths, or relative to the
    /// project.
    pub fn scan(project: &Path, protected: &[PathBuf]) -> Self {
        // Found paths are compared with the protected ones, and links would make them differ.
        let project = project.canonicalize().unwrap_or_else(|_| project.to_owned());
        let protected: Vec<PathBuf> = protected
            .iter()
            .map(|path| project.join(path))
            .map(|path| path.canonicalize().unwrap_or(path))
            .collect();
        let keys = AnswerKeyIndex::of(&protected);
        let mut hidden = Self::default();
        let mut folders = vec![project];
        let mut left = MAX_ENTRIES;
        while let Some(folder) = folders.pop() {
            let Ok(entries) = folder.read_dir() else { continue };
            for entry in entries.flatten() {
                left = left.saturating_sub(1);
                if left == 0 {
                    return hidden;
                }
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                let Ok(kind) = entry.file_type() else { continue };
                // The target of a link is inspected where it is, if it belongs to the project.
                if kind.is_symlink() || protected.contains(&path) {
                    continue;
                }
                if is_socket(kind) {
                    // The listener of a socket is outside the sandbox.
                    hidden.secrets.push(path);
                } else if kind.is_dir() {
                    if is_git_folder(&path, &name) {
                        hidden.secrets.extend(git_stores(&path));
                    } else if [OTHER_STORES, SECRET_FOLDERS].concat().contains(&name.as_str()) {
                        hidden.secrets.push(path);
                    } else if keys.is_copy_by_name(&name) {
                        hidden.answers.push(path);
                    } else if ![GENERATED, PACKAGES].concat().contains(&name.as_str()) {
                        folders.push(path);
                    }
                } else if kind.is_file() {
                    // The cheapest test comes first.
                    if keys.is_copy_by_name(&name)
                        || keys.is_copy(&path)
                        || is_recording(&path, &name)
                    {
                        hidden.answers.push(path);
                    } else if is_secret(&path, &name) {
                        hidden.secrets.push(path);
                    }
                }
            }
        }
        hidden.answers.sort();
        hidden.secrets.sort();
        hidden
    }
}

/// Returns true for the folder of a repository, bare ones included.
fn is_git_folder(path: &Path, name: &str) -> bool {
    name == ".git" || (name.ends_with(".git") && path.join("objects").is_dir())
}

/// Returns the parts of a repository's folder that tell of hidden files.
fn git_stores(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let is_store = |name: &str| GIT.contains(&name) || name.starts_with(SHARED_INDEX);
    let stores = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_store));
    stores.map(|entry| entry.path()).collect()
}

impl AnswerKeyIndex {
    fn of(protected: &[PathBuf]) -> Self {
        let mut keys = Self::default();
        let mut waiting = Vec::new();
        for path in protected {
            keys.names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
            waiting.push(path.clone());
        }
        let mut left = MAX_ENTRIES;
        while let Some(path) = waiting.pop() {
            left = left.saturating_sub(1);
            let Ok(found) = path.symlink_metadata() else { continue };
            if left == 0 {
                break;
            }
            if found.is_dir() {
                let entries = path.read_dir().into_iter().flatten().flatten();
                waiting.extend(entries.map(|entry| entry.path()));
            } else if found.is_file() && (1..=MAX_KEY).contains(&found.len()) {
                keys.names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
                if let Ok(bytes) = read_bounded(&path, MAX_KEY) {
                    let digests = keys.contents.entry(found.len()).or_default();
                    digests.insert(digest::sha256_hex(&bytes));
                }
            }
        }
        keys
    }

    /// Returns true if a name is that of an answer key with an addition: `a.yaml~`, `a.yaml.bak`,
    /// `a-old.yaml`.
    fn is_copy_by_name(&self, name: &str) -> bool {
        // Editors put marks in front: `.#suite.yaml` of Emacs, `.suite.yaml.swp` of Vim,
        // `.~lock.suite.yaml#` of LibreOffice.
        let bare = name.trim_start_matches(['.', '#']).trim_start_matches("~lock.");
        let bare = bare.trim_end_matches('#');
        // The same name is no copy: the key itself is protected by its path, and another
        // `README.md` must stay readable.
        if bare != name && self.names.contains(bare) {
            return true;
        }
        let mut shorter = bare.to_owned();
        // Additions at the end first, then those before the extension.
        while let Some(at) = shorter.rfind(['.', '~', '-', '_', ' ', '(']) {
            let rest = &bare[at..];
            shorter.truncate(at);
            if self.names.contains(shorter.trim_end()) && is_copy_mark(rest) {
                return true;
            }
        }
        let (stem, extension) = bare.rsplit_once('.').unwrap_or((bare, ""));
        let mut shorter = stem.to_owned();
        while let Some(at) = shorter.rfind(['.', '~', '-', '_', ' ', '(']) {
            shorter.truncate(at);
            let original = format!("{}.{extension}", shorter.trim_end());
            if self.names.contains(&original) && is_copy_mark(&stem[at..]) {
                return true;
            }
        }
        false
    }

    fn is_copy(&self, path: &Path) -> bool {
        // Sizes are compared first, so that only candidates are read.
        let Ok(found) = path.symlink_metadata() else { return false };
        self.contents.get(&found.len()).is_some_and(|digests| {
            read_bounded(path, MAX_KEY)
                .is_ok_and(|bytes| digests.contains(&digest::sha256_hex(&bytes)))
        })
    }
}

/// Returns true if the addition to a name marks a copy.
fn is_copy_mark(added: &str) -> bool {
    let words: Vec<String> = added
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is_mark = |word: &String| {
        COPY_WORDS.iter().any(|mark| word.starts_with(mark))
            || word.chars().all(|c| c.is_ascii_digit())
            // Further swap files of Vim, rejected patches, and `suite.yaml.json`.
            || ["swo", "swn", "rej", "yaml", "yml", "json"].contains(&word.as_str())
    };
    // True as well without any word, as in the `suite.yaml~` of editors.
    words.iter().all(is_mark)
}

/// Returns true if a file is a recording of models, a report, a baseline or a suite of this
/// program, wherever it is.
fn is_recording(path: &Path, name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|it| it.to_str()).unwrap_or_default();
    if !["json", "yaml", "yml"].contains(&extension) {
        return false;
    }
    let Some(text) = beginning(path) else { return false };
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    match extension {
        "json" => {
            has(&["\"model\"", "\"request\"", "\"messages\""])
                || has(&["\"schema_version\"", "\"selftest_version\"", "\"run_id\""])
                || has(&["\"scenario\"", "\"hints\"", "\"prompt\""])
        }
        _ => has(&["cases:", "hints:", "prompt:"]) || has(&["cases:", "scenario:", "prompt:"]),
    }
}

#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "the name is in lower case")]
fn is_secret(path: &Path, name: &str) -> bool {
    let lower = name.to_lowercase();
    if SECRET_FILES.contains(&lower.as_str())
        || SECRET_ENDS.iter().any(|end| lower.ends_with(end))
        // The public half of a key pair is no secret.
        || SECRET_BEGINNINGS.iter().any(|it| lower.starts_with(it)) && !lower.ends_with(".pub")
    {
        return true;
    }
    if lower.starts_with(".env.") || lower.ends_with(".env") {
        return !EXAMPLES.iter().any(|end| lower.ends_with(end));
    }
    // Public certificates use the same extensions.
    let may_be_key = [".pem", ".key"].iter().any(|end| lower.ends_with(end));
    may_be_key && beginning(path).is_some_and(|text| text.contains("PRIVATE KEY"))
}

fn beginning(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    open_regular(path).ok()?.take(MAX_BEGINNING).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(unix)]
fn is_socket(kind: fs::FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&kind)
}

#[cfg(not(unix))]
fn is_socket(_kind: fs::FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_answers_and_keys_are_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let suite = "version: 1\ncases: []\n";
        for (path, text) in [
            ("config/selftest.yaml", "scenarios: []\n"),
            ("config/suites/a.yaml", suite),
            ("config/other.yaml", "other: true\n"),
            ("config/selftest.yaml.bak", "changed since"),
            ("config/selftest.yaml~", "x"),
            ("config/.selftest.yaml.swp", "x"),
            ("config/#selftest.yaml#", "x"),
            ("notes/selftest-old.yaml", "x"),
            ("notes/selftest (1).yaml", "x"),
            ("notes/selftest-guide.yaml", "how to use it"),
            ("notes/copied.txt", suite),
            ("tapes/0123456789abcdef-1.json", "{\"model\":\"m\",\"request\":{\"messages\":[]}}"),
            ("package.json", "{\"name\":\"x\"}"),
            (".env", "KEY=1"),
            (".env.local", "KEY=1"),
            (".env.example", "KEY="),
            ("keys/server.pem", "-----BEGIN RSA PRIVATE KEY-----"),
            ("keys/ca.pem", "-----BEGIN CERTIFICATE-----"),
            ("keys/id_ed25519", "x"),
            ("keys/id_ed25519.pub", "x"),
            (".git/HEAD", "ref: refs/heads/main"),
            (".git/objects/aa/bb", "x"),
            (".git/index", "config/suites/a.yaml"),
            (".git/sharedindex.aabb", "config/suites/a.yaml"),
            (".git/packed-refs", "aabb refs/heads/answers"),
            (".git/refs/heads/main", "aabb"),
            ("mirror.git/objects/aa/bb", "x"),
            (".hg/dirstate", "config/suites/a.yaml"),
            ("src/main.rs", "fn main() {}"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let _socket = std::os::unix::net::UnixListener::bind(root.join("agent.sock")).unwrap();
        let protected = ["config/selftest.yaml".into(), "config/suites".into()];
        let hidden = HiddenFiles::scan(&root, &protected);
        let below = |paths: &[PathBuf]| {
            let paths = paths.iter().map(|path| path.strip_prefix(&root).unwrap());
            paths.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            below(&hidden.answers),
            [
                "config/#selftest.yaml#",
                "config/.selftest.yaml.swp",
                "config/selftest.yaml.bak",
                "config/selftest.yaml~",
                "notes/copied.txt",
                "notes/selftest (1).yaml",
                "notes/selftest-old.yaml",
                "tapes/0123456789abcdef-1.json",
            ]
        );
        assert_eq!(
            below(&hidden.secrets),
            [
                ".env",
                ".env.local",
                ".git/index",
                ".git/objects",
                ".git/packed-refs",
                ".git/sharedindex.aabb",
                ".hg",
                "agent.sock",
                "keys/id_ed25519",
                "keys/server.pem",
                "mirror.git/objects"
            ]
        );
    }
}
