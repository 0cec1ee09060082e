//! Reading the JSON reports of a folder back: which runs there are, and one of them.
//!
//! No path is made of foreign text: a run is found by its name among the files that are there.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;

use super::document::ReportDocument;
use super::index::{RunEntry, read_entry};
use selftest_harness::sut::namespace::RunId;

/// Larger reports are not shown.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Larger reports are not searched for prompts before each run.
const MAX_RECENT_BYTES: u64 = 8 * 1024 * 1024;

/// The folder of the JSON reports.
#[derive(Debug, Clone)]
pub struct RunArchive {
    folder: PathBuf,
}

/// A report file by what tells whether it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// Name of the run.
    pub run_id: RunId,
    /// Bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: SystemTime,
    path: PathBuf,
}

impl RunFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl RunArchive {
    /// The reports in that folder, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The report files, newest first by name.
    pub fn files(&self) -> io::Result<Vec<RunFile>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut files: Vec<RunFile> =
            entries.filter_map(|entry| run_file(&entry.ok()?.path())).collect();
        files.sort_by(|a, b| b.run_id.as_str().cmp(a.run_id.as_str()));
        Ok(files)
    }

    /// The head of a report; `None` where the file is no report.
    pub fn entry(&self, file: &RunFile) -> Option<RunEntry> {
        read_entry(File::open(&file.path).ok()?)
    }

    /// The file of a run, where there is one.
    pub fn find(&self, run_id: &str) -> io::Result<Option<RunFile>> {
        Ok(self.files()?.into_iter().find(|file| file.run_id.as_str() == run_id))
    }

    /// The prompts of the newest reports, but for that of one run. What cannot be read, or is very large, is left out.
    pub fn recent_prompts(&self, reports: usize, but_of: Option<&RunId>) -> Vec<String> {
        #[derive(Deserialize)]
        struct Head {
            cases: Vec<Case>,
        }
        #[derive(Deserialize)]
        struct Case {
            prompt: Option<String>,
        }
        let files = self.files().unwrap_or_default();
        let others = files.into_iter().filter(|file| Some(&file.run_id) != but_of);
        let newest = others.filter(|file| file.size <= MAX_RECENT_BYTES).take(reports);
        let heads = newest.filter_map(|file| {
            let text = fs::read(&file.path).ok()?;
            serde_json::from_slice::<Head>(&text).ok()
        });
        heads.flat_map(|head| head.cases).filter_map(|case| case.prompt).collect()
    }

    /// The whole report of a file, or why it cannot be read.
    pub fn read(&self, file: &RunFile) -> io::Result<ReportDocument> {
        read_report(&file.path)
    }
}

/// The report in that file, or why it cannot be read.
pub fn read_report(path: &Path) -> io::Result<ReportDocument> {
    // Opening a pipe would wait for its other end.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("expected a file"));
    }
    if metadata.len() > MAX_BYTES {
        let limit = MAX_BYTES / (1024 * 1024);
        return Err(io::Error::other(format!("it is larger than {limit} MB")));
    }
    let mut text = Vec::new();
    File::open(path)?.take(MAX_BYTES).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

fn run_file(path: &Path) -> Option<RunFile> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let run_id = RunId::try_from(name.to_owned()).ok()?;
    let metadata = path.metadata().ok().filter(fs::Metadata::is_file)?;
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(RunFile { run_id, size: metadata.len(), modified, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_refused_for_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let why = |path: &Path| read_report(path).unwrap_err().to_string();
        assert_eq!(why(folder.path()), "expected a file");
        let large = folder.path().join("large.json");
        // A hole: it takes no room on the disk.
        File::create(&large).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(why(&large), "it is larger than 256 MB");
        fs::write(&large, "{").unwrap();
        assert!(why(&large).starts_with("EOF while parsing"), "{}", why(&large));
    }
}
