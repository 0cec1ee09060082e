//! Reads project files: those that a `chat` system under test receives, within a token budget, and
//! those that the user names in a scenario or a suite. Named files that are hidden from the system under
//! test are rejected, because an answer key must not become an excerpt.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::{ANSWER_KEYS, AnchoredFolder, GENERATED, HiddenFiles, barred_paths, is_barred};
use crate::scenario::ground::SourceFile;
use selftest_checks::scenario::{NamedFileError, path_error};
use selftest_models::estimate_tokens;
use selftest_text::file::open_regular;
use selftest_text::redact::Redactor;
use selftest_text::tree::{self, DirEntry};

/// Start of the note under a truncated file.
const CUT: &str = "\n… [cut: ";

/// Maximum number of project entries to inspect.
const MAX_ENTRIES: usize = 20_000;

/// Number of tokens of a file's heading in addition to its path.
const HEADING_TOKENS: u32 = 8;

/// Minimum number of remaining tokens to add another file.
const MIN_TOKENS: u32 = 24;

/// Number of tokens that a file may always use if they are left.
const FAIR_TOKENS: u32 = 200;

/// Number of bytes reserved for the note under a truncated file.
const NOTE: usize = 64;

/// Bytes that are read beyond a cut, so that a key there is redacted as a whole.
const BEYOND: usize = 8 * 1024;

/// Manifests, most informative first.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "setup.py",
    "setup.cfg",
    "requirements.txt",
    "CMakeLists.txt",
    "Makefile",
    "justfile",
    "Dockerfile",
];

/// Machine-generated text.
const NOISE: &[&str] =
    &[".lock", "-lock.json", "-lock.yaml", "go.sum", ".min.js", ".min.css", ".map", ".svg"];

/// A project file as shown to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Path below the project, with `/` as separator.
    pub path: String,
    /// Its text, redacted. A truncated text ends in a note.
    pub text: String,
    /// True if the file is truncated.
    pub cut: bool,
}

impl ProjectFile {
    /// Returns the text without the truncation note.
    pub fn own_text(&self) -> &str {
        let end = self.text.rfind(CUT).filter(|_| self.cut);
        &self.text[..end.unwrap_or(self.text.len())]
    }
}

/// Reads the files to show, most informative first: the README, manifests, pages in `docs/`, then
/// other text files, top-level ones first. The order depends only on the tree.
///
/// Skips files ignored by `.gitignore`, hidden and binary files, links, lock files, answer keys,
/// and `excluded` paths, which are absolute or below `root`. Each file uses at most half of the
/// remaining budget, so that a long README leaves room for others.
pub fn read_project_files(
    root: &Path,
    excluded: &[PathBuf],
    budget_tokens: u32,
    redactor: &Redactor,
) -> Vec<ProjectFile> {
    let Ok(root) = root.canonicalize() else {
        return Vec::new();
    };
    let mut barred = barred_paths(&root, ANSWER_KEYS, excluded);
    // Copies of answers under other names, and recordings of earlier runs.
    let HiddenFiles { answers, secrets } = HiddenFiles::scan(&root, &barred);
    barred.extend(answers.into_iter().chain(secrets));
    let mut left = budget_tokens;
    let mut files = Vec::new();
    for path in candidates(&root, &barred) {
        // The path above the text takes room in the prompt as well.
        let overhead = estimate_tokens(&path) + HEADING_TOKENS;
        let free = left.saturating_sub(overhead);
        if free < MIN_TOKENS {
            break;
        }
        // No file takes more than half of what is left, so that a long README does not crowd out
        // the rest.
        let most = free.min(FAIR_TOKENS.max(free / 2));
        if let Some((text, cut)) = beginning(&root.join(&path), most, redactor) {
            left = free.saturating_sub(estimate_tokens(&text));
            files.push(ProjectFile { path, text, cut });
        }
    }
    files
}

/// Returns the paths of the files that may be shown, relative to `root`, in order.
fn candidates(root: &Path, barred: &[PathBuf]) -> Vec<String> {
    let barred = barred.to_vec();
    let enters = move |entry: &DirEntry| {
        let name = entry.file_name();
        !is_barred(entry.path(), &barred) && !GENERATED.iter().any(|folder| name == *folder)
    };
    // The `.gitignore` of a project counts without a repository as well.
    let walk = tree::walk(root, enters).require_git(false).build();
    let mut paths: Vec<_> = walk
        .take(MAX_ENTRIES)
        .flatten()
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
            // Names stand in the prompt, where a line break would start a new line of it.
            let plain = !path.contains(char::is_control);
            (plain && !NOISE.iter().any(|end| path.ends_with(end))).then(|| (rank(&path), path))
        })
        .collect();
    // The order of a walk differs between file systems; the prompt must not.
    paths.sort();
    paths.into_iter().map(|(_, path)| path).collect()
}

/// Returns the sort key: the kind of file, then its position within the kind.
fn rank(path: &str) -> (u8, usize) {
    let depth = path.matches('/').count();
    if depth == 0 && path.to_ascii_lowercase().starts_with("readme") {
        return (0, path.len());
    }
    if let Some(place) = MANIFESTS.iter().position(|&manifest| manifest == path) {
        return (1, place);
    }
    let is_page = Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
    if is_page && path.starts_with("docs/") { (2, depth) } else { (3, depth) }
}

/// Reads the start of a text file, at most `most_tokens` long, and returns true if it is truncated.
/// Returns `None` if the file is empty, binary or unreadable.
fn beginning(path: &Path, most_tokens: u32, redactor: &Redactor) -> Option<(String, bool)> {
    // Assumes 3.5 bytes per token.
    let most = most_tokens.saturating_sub(1) as usize * 7 / 2;
    let file = open_regular(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut bytes = Vec::new();
    // One extra byte shows if the file is longer.
    file.take((most + BEYOND) as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // Truncated within a character. Any other error means that the file is not text.
        Err(error) if error.error_len().is_none() && bytes.len() > most + BEYOND => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    if text.contains('\0') || text.trim().is_empty() {
        return None;
    }
    // Redacted before the cut, so that no part of a secret at the boundary is left.
    let text = redactor.apply(text);
    if bytes.len() <= most + BEYOND && text.len() <= most {
        return Some((text.into_owned(), false));
    }
    let end = text.floor_char_boundary(most.saturating_sub(NOTE));
    let whole_lines = text[..end].rfind('\n').filter(|&line| line > end / 2);
    let shown = &text[..whole_lines.unwrap_or(end)];
    Some((format!("{shown}{CUT}the file has {size} bytes]"), true))
}

/// Maximum number of bytes to read from a file.
const MAX_BYTES: usize = 256 * 1024;

/// Reads the start of a file below `root`, redacted. `excluded` paths are absolute or below `root`.
/// `dotted` are folders of which files are read although their path begins with a dot.
pub fn read_named_file(
    root: &Path,
    excluded: &[PathBuf],
    dotted: &[&str],
    path: &str,
    redactor: &Redactor,
) -> Result<SourceFile, NamedFileError> {
    if let Some(fault) = path_error(path) {
        return Err(fault);
    }
    let root = root.canonicalize().map_err(|error| unreadable(&error))?;
    let barred = barred_paths(&root, ANSWER_KEYS, excluded);
    let named = root.join(path);
    // Links are resolved before the check, so that none leads out of the project.
    let found = named.canonicalize().map_err(|error| unreadable(&error))?;
    let Ok(below) = found.strip_prefix(&root) else { return Err(NamedFileError::Outside) };
    // Both are checked, so that neither a hidden name nor a link to a hidden file passes.
    let paths = [named.as_path(), found.as_path()];
    let is_hidden = paths.iter().any(|path| is_barred(path, &barred))
        || is_dotted(below, dotted)
        || is_dotted(Path::new(path), dotted);
    if is_hidden {
        return Err(NamedFileError::Hidden);
    }
    // Opening a named pipe would block until a writer appears.
    if !found.is_file() {
        return Err(NamedFileError::Missing);
    }
    let file = open_regular(&found).map_err(|error| unreadable(&error))?;
    let text = text_of(file, redactor)?;
    let path = below.to_string_lossy().replace('\\', "/");
    Ok(SourceFile { path, text })
}

/// Reads the start of a file of a folder that a program can write to, redacted. `root` is the path
/// by which the program knows the folder, for `excluded` paths below it. Links are not followed.
/// `dotted` are folders of which files are read although their path begins with a dot.
pub fn read_anchored_file(
    folder: &AnchoredFolder,
    root: &Path,
    excluded: &[PathBuf],
    dotted: &[&str],
    path: &str,
    redactor: &Redactor,
) -> Result<String, NamedFileError> {
    if let Some(fault) = path_error(path) {
        return Err(fault);
    }
    let barred = barred_paths(root, ANSWER_KEYS, excluded);
    if is_barred(&root.join(path), &barred) || is_dotted(Path::new(path), dotted) {
        return Err(NamedFileError::Hidden);
    }
    let file = folder.open_file(Path::new(path)).map_err(|error| unreadable(&error))?;
    text_of(file, redactor)
}

fn unreadable(error: &std::io::Error) -> NamedFileError {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => NamedFileError::Missing,
        _ => NamedFileError::Unreadable(error.to_string()),
    }
}

/// Returns true if a part of the path begins with a dot, or a part below one of these folders. Such
/// files are hidden, even if no list names them.
fn is_dotted(path: &Path, dotted: &[&str]) -> bool {
    let path = dotted.iter().find_map(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
    let mut names = path.components().filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    names.any(|name| name.starts_with('.'))
}

/// Reads the start of a text.
fn text_of(file: File, redactor: &Redactor) -> Result<String, NamedFileError> {
    let mut bytes = Vec::new();
    file.take((MAX_BYTES + BEYOND) as u64)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(&error))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // Truncated within a character. Any other error means that the file is not text.
        Err(error) if error.error_len().is_none() && bytes.len() == MAX_BYTES + BEYOND => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err(NamedFileError::Binary),
    };
    if text.contains('\0') {
        return Err(NamedFileError::Binary);
    }
    if text.trim().is_empty() {
        return Err(NamedFileError::Empty);
    }
    let text = redactor.apply(text);
    Ok(text[..text.floor_char_boundary(MAX_BYTES)].to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn paths(files: &[ProjectFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn the_most_telling_come_first_and_answers_never() {
        let folder = project(&[
            ("src/deep/module.rs", "mod"),
            ("src/main.rs", "fn main() {}"),
            ("docs/guide.md", "guide"),
            ("docs/reports/selftest/index.md", "verdicts"),
            ("reports/selftest/a.json", "verdicts"),
            ("config/selftest.yaml", "scenarios"),
            ("config/suites/a.yaml", "hints"),
            ("config/other.yaml", "other"),
            ("prompts/judge/rubric.md", "rubric"),
            (".selftest/journal", "journal"),
            (".env", "KEY=1"),
            ("my/config.yaml", "scenarios"),
            ("Cargo.toml", "[package]"),
            ("Cargo.lock", "lock"),
            ("README.ja.md", "readme"),
            ("README.md", "readme"),
            ("ignored.txt", "ignored"),
            (".gitignore", "ignored.txt\n"),
            ("node_modules/a/index.js", "x"),
            ("image.png", "\u{0}PNG"),
            ("empty.txt", "\n"),
        ]);
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("README")).unwrap();
        let files = read_project_files(
            folder.path(),
            &["my/config.yaml".into()],
            10_000,
            &Redactor::default(),
        );
        assert_eq!(
            paths(&files),
            [
                "README.md",
                "README.ja.md",
                "Cargo.toml",
                "docs/guide.md",
                "config/other.yaml",
                "src/main.rs",
                "src/deep/module.rs"
            ]
        );
        let absolute = folder.path().join("src");
        let files = read_project_files(folder.path(), &[absolute], 10_000, &Redactor::default());
        assert!(!paths(&files).contains(&"src/main.rs"));
    }

    #[test]
    fn the_budget_holds() {
        let long = "A line of forty bytes, give or take one.\n".repeat(2000);
        let folder = project(&[
            ("README.md", &long),
            ("a.txt", &long),
            ("b.txt", "short"),
            ("c.txt", &long),
        ]);
        for budget in [0, 30, 100, 1500, 5000] {
            let files = read_project_files(folder.path(), &[], budget, &Redactor::default());
            let used: u32 = files
                .iter()
                .map(|file| {
                    estimate_tokens(&file.text) + estimate_tokens(&file.path) + HEADING_TOKENS
                })
                .sum();
            assert!(used <= budget, "{used} of {budget}");
            assert_eq!(files.is_empty(), budget < 30 + MIN_TOKENS, "{budget}");
        }
        let files = read_project_files(folder.path(), &[], 1500, &Redactor::default());
        assert_eq!(paths(&files)[..3], ["README.md", "a.txt", "b.txt"]);
        assert!(files[0].cut && files[0].text.ends_with("bytes]"), "{}", files[0].text);
        assert!(files[0].own_text().ends_with("one."), "{}", files[0].own_text());
        assert_eq!(files[2].own_text(), "short");
        assert_eq!((files[2].text.as_str(), files[2].cut), ("short", false));
    }

    #[test]
    fn secrets_and_characters_survive_a_cut() {
        let folder =
            project(&[("README.md", &"é".repeat(10_000)), ("a.txt", "key AKIAIOSFODNN7EXAMPLE")]);
        let files = read_project_files(folder.path(), &[], 500, &Redactor::default());
        assert!(files[0].cut && files[0].text.starts_with('é'));
        assert_eq!(files[1].text, "key [redacted]");
        assert_eq!(
            read_project_files(Path::new("/does/not/exist"), &[], 500, &Redactor::default()),
            []
        );
    }

    #[test]
    fn no_part_of_a_long_key_is_left_at_a_cut() {
        let key = "k3y-".repeat(100);
        let redactor = Redactor::new(vec![key.clone()]);
        for before in (0..3_000).step_by(100) {
            let text = format!("{}{key}{}", "a ".repeat(before / 2), " a".repeat(9_000));
            let folder = project(&[("README.md", &text)]);
            let files = read_project_files(folder.path(), &[], 500, &redactor);
            assert!(files[0].cut && !files[0].text.contains("k3y"), "{before}");
        }
        let text = format!("{}{key}", "a ".repeat(MAX_BYTES / 2 - 50));
        let folder = project(&[("long.txt", &text)]);
        let read = read_named_file(folder.path(), &[], &[], "long.txt", &redactor).unwrap();
        assert!(!read.text.contains("k3y") && read.text.len() <= MAX_BYTES);
    }

    #[test]
    fn only_readable_files_of_the_project_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, text) in [
            ("docs/usage.md", "# Usage\n"),
            ("docs/empty.md", " \n"),
            ("image.png", "\u{0}PNG"),
            ("config/selftest.yaml", "version: 1"),
            ("config/suites/a.yaml", "hints"),
            ("reports/a.json", "{}"),
            (".env", "KEY=1"),
            ("mine.yaml", "hints"),
        ] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(root.join("latin.txt"), b"caf\xe9 and more").unwrap();
        fs::write(root.join("long.txt"), "é".repeat(MAX_BYTES)).unwrap();
        let excluded = [PathBuf::from("mine.yaml")];
        let read = |path: &str| read_named_file(root, &excluded, &[], path, &Redactor::default());
        assert_eq!(read("docs/usage.md").unwrap().text, "# Usage\n");
        assert_eq!(read("./docs/usage.md").unwrap().path, "docs/usage.md");
        assert_eq!(read("long.txt").unwrap().text.len(), MAX_BYTES);
        for (path, fault) in [
            ("/etc/passwd", NamedFileError::Absolute),
            ("../a.md", NamedFileError::Outside),
            ("docs/../../a.md", NamedFileError::Outside),
            ("docs/../docs/usage.md", NamedFileError::Outside),
            ("", NamedFileError::Missing),
            ("docs", NamedFileError::Missing),
            ("docs/absent.md", NamedFileError::Missing),
            ("docs/usage.md/x", NamedFileError::Missing),
            ("docs/empty.md", NamedFileError::Empty),
            ("image.png", NamedFileError::Binary),
            ("latin.txt", NamedFileError::Binary),
            ("config/selftest.yaml", NamedFileError::Hidden),
            ("config/suites/a.yaml", NamedFileError::Hidden),
            ("reports/a.json", NamedFileError::Hidden),
            (".env", NamedFileError::Hidden),
            ("mine.yaml", NamedFileError::Hidden),
        ] {
            assert_eq!(read(path), Err(fault), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere_else() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("config")).unwrap();
        fs::write(folder.path().join("outside.md"), "text").unwrap();
        fs::write(root.join("config/selftest.yaml"), "version: 1").unwrap();
        symlink("../outside.md", root.join("a.md")).unwrap();
        symlink("config/selftest.yaml", root.join("b.md")).unwrap();
        let read = |path: &str| read_named_file(&root, &[], &[], path, &Redactor::default());
        assert_eq!(read("a.md"), Err(NamedFileError::Outside));
        assert_eq!(read("b.md"), Err(NamedFileError::Hidden));
    }
}
