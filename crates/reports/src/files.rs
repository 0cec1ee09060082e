//! The files that every run writes. Files requested in addition are in `ci/files`.
//!
//! Verifies write access before the first model call, replaces files atomically, and never leaves a
//! partial report.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::index::{self, RunEntry, RunIndex};
use selftest_harness::sut::namespace::RunId;
use selftest_text::disk::{Disk, OpenMode, SystemDisk};
use selftest_text::file;

/// Content written to each folder when opening it: large enough to detect a full disk.
static PROBE: [u8; 64 * 1024] = [b'.'; 64 * 1024];

/// Maximum number of JSON files read for the index, newest first by name.
const MAX_INDEXED: usize = 5_000;

/// An error that prevents writing the reports.
#[derive(Debug, thiserror::Error)]
pub enum ReportFilesError {
    /// A folder cannot be created, or something else has its name.
    #[error("cannot use {} as the report folder: {cause}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error from the OS.
        cause: io::Error,
    },
    /// The folder exists but is not writable.
    #[error("cannot write to the report folder {}: {cause}", path.display())]
    NotWritable {
        /// The folder.
        path: PathBuf,
        /// Error from the OS.
        cause: io::Error,
    },
    /// A report with this name already exists.
    #[error("{} already exists, expected a new file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

/// A report, or the index of runs, cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReportWriteError {
    /// The file cannot be replaced.
    #[error("cannot write {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The folder cannot be listed for the index.
    #[error("cannot list the report folder {}: {source}", folder.display())]
    List { folder: PathBuf, source: io::Error },
    /// A template failed.
    #[error("cannot render {what}: {source}")]
    Template { what: &'static str, source: askama::Error },
    /// The report is not JSON.
    #[error("cannot render the JSON report: {0}")]
    Json(#[source] serde_json::Error),
}

impl ReportFilesError {
    /// Returns one thing that the user can do.
    pub fn hint(&self) -> &'static str {
        match self {
            ReportFilesError::NotWritable { cause, .. }
                if cause.kind() == io::ErrorKind::StorageFull =>
            {
                "free some space, or set reports.json_folder and reports.markdown_folder to folders on another disk"
            }
            ReportFilesError::Folder { .. } | ReportFilesError::NotWritable { .. } => {
                "set reports.json_folder and reports.markdown_folder in the config to writable folders"
            }
            ReportFilesError::Exists { .. } => "rerun: each run gets a new name",
        }
    }
}

/// Paths of a run's reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportPaths {
    /// `reports/selftest/<run_id>.json`.
    pub json: PathBuf,
    /// `docs/reports/selftest/<run_id>.md`.
    pub markdown: PathBuf,
}

/// The report files of one run.
#[derive(Debug)]
pub struct ReportFiles {
    run_id: RunId,
    json_folder: PathBuf,
    markdown_folder: PathBuf,
    /// Relative link from the Markdown folder to the JSON file.
    json_link: String,
    /// True if no earlier run left a report here.
    is_first: bool,
    disk: Arc<dyn Disk>,
}

impl ReportFiles {
    /// Creates the folders and verifies that both are writable, leaving nothing behind in them.
    pub fn open(
        json_folder: &Path,
        markdown_folder: &Path,
        run_id: &RunId,
    ) -> Result<Self, ReportFilesError> {
        let files = Self::reopen(json_folder, markdown_folder, run_id)?;
        let ReportPaths { json, markdown } = files.paths();
        match [json, markdown].into_iter().find(|path| path.exists()) {
            Some(path) => Err(ReportFilesError::Exists { path }),
            None => Ok(files),
        }
    }

    /// Like [`ReportFiles::open`], for a resumed run that may already have reports.
    pub fn reopen(
        json_folder: &Path,
        markdown_folder: &Path,
        run_id: &RunId,
    ) -> Result<Self, ReportFilesError> {
        Self::reopen_on(Arc::new(SystemDisk), json_folder, markdown_folder, run_id)
    }

    /// Like [`ReportFiles::reopen`], on this disk.
    pub fn reopen_on(
        disk: Arc<dyn Disk>,
        json_folder: &Path,
        markdown_folder: &Path,
        run_id: &RunId,
    ) -> Result<Self, ReportFilesError> {
        let mut files = Self {
            run_id: run_id.clone(),
            json_folder: json_folder.to_owned(),
            markdown_folder: markdown_folder.to_owned(),
            json_link: String::new(),
            is_first: false,
            disk,
        };
        let mut real = [PathBuf::new(), PathBuf::new()];
        for (folder, real) in [json_folder, markdown_folder].into_iter().zip(&mut real) {
            let refuse = |cause| ReportFilesError::Folder { path: folder.to_owned(), cause };
            files.disk.create_folder(folder).map_err(refuse)?;
            // The relative link must also work if a folder is reached through a symlink.
            *real = files.disk.canonicalize(folder).map_err(refuse)?;
            files.probe(folder).map_err(|cause| ReportFilesError::NotWritable {
                path: folder.to_owned(),
                cause,
            })?;
        }
        let [json, markdown] = real;
        files.is_first = !has_reports(&*files.disk, &json);
        files.json_link = relative(&markdown, &json.join(format!("{run_id}.json")));
        Ok(files)
    }

    /// Returns the paths of the run's reports, as configured.
    pub fn paths(&self) -> ReportPaths {
        ReportPaths {
            json: self.json_folder.join(format!("{}.json", self.run_id)),
            markdown: self.markdown_folder.join(format!("{}.md", self.run_id)),
        }
    }

    /// Returns true if this project had no reports when the run started.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns the link from the Markdown report to the JSON report.
    pub(super) fn json_link(&self) -> &str {
        &self.json_link
    }

    /// Replaces the JSON report with the output of `write`.
    pub(super) fn write_json(
        &self,
        write: impl Fn(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), ReportWriteError> {
        self.replace_by(&self.paths().json, write)
    }

    /// Creates an unlinked file next to the JSON report. It disappears when closed, even if the
    /// process is killed.
    pub(super) fn create_unlinked(&self) -> io::Result<File> {
        // In the report folder, which is known to be writable; /tmp is in memory on many systems.
        let path = self.json_folder.join(format!(".{}.cases", self.run_id));
        let mut options = OpenOptions::new();
        // `create_new` does not follow a symlink that is in place of the file.
        let file = options.read(true).write(true).create_new(true).open(&path)?;
        // Without a name it is gone with the process, however that ends.
        fs::remove_file(&path)?;
        Ok(file)
    }

    /// Replaces the Markdown report.
    pub(super) fn write_markdown(&self, text: &str) -> Result<(), ReportWriteError> {
        self.replace(&self.paths().markdown, text)
    }

    /// Regenerates the index of runs and its chart.
    pub(super) fn write_index(&self) -> Result<(), ReportWriteError> {
        let runs = self.runs().map_err(|source| ReportWriteError::List {
            folder: self.json_folder.clone(),
            source,
        })?;
        let failed = |source| ReportWriteError::Template { what: "the list of runs", source };
        let picture = index::trend_picture(&runs.entries).map_err(failed)?;
        self.replace(&self.markdown_folder.join(index::TREND_FILE), &picture)?;
        let text = index::render(&runs).map_err(failed)?;
        self.replace(&self.markdown_folder.join("index.md"), &text)?;
        for folder in [&self.json_folder, &self.markdown_folder] {
            // The reports of a finished run survive a loss of power. Not every system can sync a
            // folder.
            let _ = self.disk.sync_folder(folder);
        }
        Ok(())
    }

    fn runs(&self) -> io::Result<RunIndex> {
        let mut names = Vec::new();
        for path in self.disk.list(&self.json_folder)? {
            if path.extension().is_some_and(|extension| extension == "json") {
                names.push(path);
            }
        }
        // Names start with the date, so this puts the newest first.
        names.sort_unstable_by(|a, b| b.cmp(a));
        let left_out = u32::try_from(names.len().saturating_sub(MAX_INDEXED)).unwrap_or(u32::MAX);
        names.truncate(MAX_INDEXED);
        let mut runs = RunIndex { left_out, ..RunIndex::default() };
        for path in names {
            match self.read_run(&path) {
                Some(run) => runs.entries.push(run),
                None => runs.foreign += 1,
            }
        }
        // File names only contain the minute, so sort by the exact start time.
        runs.entries.sort_by(|a, b| (b.started_at, &b.run_id).cmp(&(a.started_at, &a.run_id)));
        Ok(runs)
    }

    /// Returns the entry of a JSON file, if it is the report of the run in its name.
    fn read_run(&self, path: &Path) -> Option<RunEntry> {
        let name = path.file_stem()?.to_str()?;
        // Opening a named pipe would block until a writer appears.
        if !self.disk.is_file(path).ok()? {
            return None;
        }
        let file = self.disk.open(path, OpenMode::Read).ok()?;
        index::read_entry(file.reader().ok()?).filter(|run| run.run_id.as_str() == name)
    }

    fn probe(&self, folder: &Path) -> io::Result<()> {
        let path = folder.join(format!(".{}.probe", self.run_id));
        let result = file::create_new(&*self.disk, &path).and_then(|file| file.append(&PROBE));
        // Removed even if writing to it failed.
        let removed = self.disk.remove(&path);
        result.and(removed)
    }

    /// Replaces a file, recreating its folder if it was deleted. Temporary names contain the run
    /// ID, so two runs never share one.
    fn replace(&self, target: &Path, text: &str) -> Result<(), ReportWriteError> {
        self.replace_by(target, |file| file.write_all(text.as_bytes()))
    }

    fn replace_by(
        &self,
        target: &Path,
        write: impl Fn(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<(), ReportWriteError> {
        let replace = || file::replace_on(&*self.disk, target, self.run_id.as_str(), &write);
        replace()
            .or_else(|error| match (error.kind(), target.parent()) {
                // The folder may have been deleted during the run.
                (io::ErrorKind::NotFound, Some(folder)) => {
                    self.disk.create_folder(folder).and_then(|()| replace())
                }
                _ => Err(error),
            })
            .map_err(|source| ReportWriteError::File { path: target.to_owned(), source })
    }
}

/// Returns true if a file in the folder is named like a run's report.
fn has_reports(disk: &dyn Disk, folder: &Path) -> bool {
    let paths = disk.list(folder).unwrap_or_default();
    paths.iter().any(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".json").is_some_and(|run| RunId::try_from(run.to_owned()).is_ok())
    })
}

/// Returns the relative path from a folder to a file, both absolute, with `/` separators.
pub(super) fn relative(from: &Path, to: &Path) -> String {
    let from: Vec<Component<'_>> = from.components().collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    // `shared` is at most the length of either path.
    let up = std::iter::repeat_n("..".to_owned(), from.len() - shared);
    let down = to[shared..].iter().map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn opening_makes_the_folders_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (json, markdown) = (root.path().join("reports/s"), root.path().join("docs/r/s"));
        let files = ReportFiles::open(&json, &markdown, &fixture::run_id()).unwrap();
        assert!(names(&json).is_empty() && names(&markdown).is_empty());
        assert_eq!(files.json_link(), "../../../reports/s/selftest-20260206-1234-bcdfgh.json");
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_found() {
        let root = tempfile::tempdir().unwrap();
        let blocked = root.path().join("reports");
        fs::write(&blocked, "x").unwrap();
        let error = ReportFiles::open(&blocked, root.path(), &fixture::run_id()).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("cannot use "), "{message}");
        assert!(message.contains(blocked.to_str().unwrap()), "{message}");
        assert!(error.hint().contains("reports.json_folder"));
        assert_eq!(fs::read_to_string(&blocked).unwrap(), "x");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_found() {
        // Root may write anywhere but to the kernel's own folders.
        let root = tempfile::tempdir().unwrap();
        let error =
            ReportFiles::open(root.path(), Path::new("/proc/self/fdinfo"), &fixture::run_id())
                .unwrap_err();
        assert!(matches!(error, ReportFilesError::NotWritable { .. }), "{error}");
        assert!(error.to_string().contains("/proc/self/fdinfo"), "{error}");
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn an_older_report_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let older = root.path().join("selftest-20260206-1234-bcdfgh.json");
        fs::write(&older, "older").unwrap();
        let error = ReportFiles::open(root.path(), root.path(), &fixture::run_id()).unwrap_err();
        assert!(matches!(error, ReportFilesError::Exists { .. }), "{error}");
        assert_eq!(fs::read_to_string(&older).unwrap(), "older");
    }

    #[test]
    fn the_index_skips_what_is_no_report() {
        let root = tempfile::tempdir().unwrap();
        let (json, markdown) = (root.path().join("json"), root.path().join("md"));
        let files = ReportFiles::open(&json, &markdown, &fixture::run_id()).unwrap();
        let text = fixture::rich_run().json().unwrap().unwrap();
        files.write_json(|file| file.write_all(text.as_bytes())).unwrap();
        fs::write(json.join("README.md"), "not JSON").unwrap();
        fs::write(json.join("sample.json"), "{}").unwrap();
        fs::write(json.join("broken.json"), [0xff, 0xfe, 0]).unwrap();
        fs::create_dir(json.join("folder.json")).unwrap();
        fs::copy(files.paths().json, json.join("selftest-20260206-1234-copy.json")).unwrap();
        let runs = files.runs().unwrap();
        assert_eq!((runs.entries.len(), runs.foreign), (1, 4));
        files.write_index().unwrap();
        assert_eq!(names(&markdown), ["index.md", "trend.svg"]);
        let index = fs::read_to_string(markdown.join("index.md")).unwrap();
        assert!(index.contains("Ignored 4 JSON files in the report folder"), "{index}");
    }

    #[test]
    fn a_link_in_place_of_the_temporary_file_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let files = ReportFiles::open(root.path(), root.path(), &fixture::run_id()).unwrap();
        let victim = root.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let run = fixture::run_id();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&victim, root.path().join(format!(".{run}.json.{run}.tmp")))
            .unwrap();
        files.write_json(|file| file.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(files.paths().json).unwrap(), "new");
    }
}
