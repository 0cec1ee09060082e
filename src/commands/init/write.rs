//! Writes the files of `selftest init`: never over a file unless told to, never through a link that
//! leads out of the project.

use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};

use selftest_text::file;
use selftest_text::wording::plural;

/// Part of the names of temporary files.
const WRITER: &str = "init";

/// Most bytes of a list of ignored files that is added to.
const MAX_LIST: u64 = 1 << 20;

/// The project that files are written to.
pub(super) struct Destination<'a> {
    /// Absolute, without links.
    pub(super) root: &'a Path,
    /// True to replace existing files.
    pub(super) replace: bool,
}

/// The outcome for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    New,
    Replaced,
    /// It was there and stays.
    Kept,
    /// So many lines were added to what was there.
    Added(usize),
    /// All lines were there.
    Complete,
}

impl Written {
    /// One line for people, with what the file is about.
    pub(super) fn line(self, path: &str, about: Option<&str>) -> String {
        let about = about.map(|words| format!(": {words}")).unwrap_or_default();
        match self {
            Self::New => format!("wrote  {path}{about}\n"),
            Self::Replaced => {
                format!("wrote  {path}{about} (it replaces the one that was there)\n")
            }
            Self::Kept => format!("kept   {path} (it exists; --force replaces it)\n"),
            Self::Added(count) => {
                format!("wrote  {path}: {} added\n", plural(count as u64, "line"))
            }
            Self::Complete => format!("kept   {path}\n"),
        }
    }
}

impl Destination<'_> {
    /// Writes a file, its folders before it.
    pub(super) fn write(&self, path: &str, text: &str) -> Result<Written> {
        let path = self.prepared(path)?;
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => file.write_all(text.as_bytes()).map(|()| Written::New),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && self.replace => {
                file::replace(&path, WRITER, text).map(|()| Written::Replaced)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Written::Kept),
            Err(error) => Err(error),
        }
    }

    /// Adds those of the lines that a file does not have, without touching the others.
    pub(super) fn add_lines(&self, path: &str, lines: &[&str]) -> Result<Written> {
        let path = self.prepared(path)?;
        let text = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
            Ok(file) if !file.is_file() => {
                return Err(Error::other("it is a link or a folder, expected a file"));
            }
            Ok(_) => file::read_bounded_text(&path, MAX_LIST)?,
        };
        let is_there = |line: &&&str| {
            let bare = line.trim_matches('/');
            text.lines().any(|own| own.trim().trim_matches('/') == bare)
        };
        let missing: Vec<&str> = lines.iter().filter(|line| !is_there(line)).copied().collect();
        if missing.is_empty() {
            return Ok(Written::Complete);
        }
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let added = format!("{text}{gap}{}\n", missing.join("\n"));
        file::replace(&path, WRITER, &added)?;
        Ok(Written::Added(missing.len()))
    }

    /// Makes the folders of a file, and makes sure that they lie in the project.
    fn prepared(&self, path: &str) -> Result<PathBuf> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(self.root);
        // What is there is looked at before anything is made below it.
        let there = folder.ancestors().find(|folder| folder.symlink_metadata().is_ok());
        let real = there.unwrap_or(self.root).canonicalize()?;
        if !real.starts_with(self.root) {
            return Err(Error::other(format!(
                "{} leads out of the project",
                there.unwrap_or(self.root).display()
            )));
        }
        std::fs::create_dir_all(folder)?;
        Ok(path)
    }
}
