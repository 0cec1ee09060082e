//! Reads project files that the user names in a scenario or a suite. Files hidden from the system
//! under test are rejected, because an answer key must not become an excerpt.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::{ANSWER_KEYS, AnchoredFolder, barred_paths, is_barred};
use crate::scenario::ground::SourceFile;
use selftest_checks::named_file::{NamedFileError, path_error};
use selftest_text::redact::Redactor;

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
    let file = File::open(&found).map_err(|error| unreadable(&error))?;
    let text = text_of(file)?;
    let path = below.to_string_lossy().replace('\\', "/");
    Ok(SourceFile { path, text: redactor.apply(&text).into_owned() })
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
    Ok(redactor.apply(&text_of(file)?).into_owned())
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
fn text_of(file: File) -> Result<String, NamedFileError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        // Truncated within a character. Any other error means that the file is not text.
        Err(error) if error.error_len().is_none() && bytes.len() == MAX_BYTES => {
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
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

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
