//! The JSON reports in a folder: lists the runs, reads one of them, and reuses results for cases
//! whose dependencies have not changed. An unreadable report only loses its own results.
//!
//! Paths are never built from untrusted text: a run is looked up by name among the existing files.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use std::{fs, io};

use jiff::Timestamp;
use serde::Deserialize;

use super::document::ReportDocument;
use super::index::{RunEntry, read_entry};
use selftest_harness::outcome::CaseResult;
use selftest_harness::sut::namespace::RunId;
use selftest_text::file::{open_regular, read_bounded};

/// Maximum size of a report to display, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Maximum size of a report that is searched for prompts before each run, in bytes.
const MAX_RECENT_BYTES: u64 = 8 * 1024 * 1024;

/// The folder of the JSON reports.
#[derive(Debug, Clone)]
pub struct RunArchive {
    folder: PathBuf,
    /// Start times of runs whose names do not tell their order. They never change.
    starts: Arc<Mutex<HashMap<RunId, Timestamp>>>,
}

/// A report file, with the metadata that reveals changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFile {
    /// ID of the run.
    pub run_id: RunId,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last modification.
    pub modified: SystemTime,
    path: PathBuf,
}

impl RunFile {
    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl RunArchive {
    /// Opens the folder, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), starts: Arc::default() }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the report files, the run that started last first.
    pub fn files(&self) -> io::Result<Vec<RunFile>> {
        let mut files = self.unsorted()?;
        files.sort_by(|a, b| b.run_id.as_str().cmp(a.run_id.as_str()));
        // Names tell the minute only, so runs of one minute are looked into.
        for rivals in files.chunk_by_mut(|a, b| a.run_id.minute() == b.run_id.minute()) {
            if rivals.len() > 1 {
                // Stable: files that are no reports keep the order of their names, at the end.
                rivals.sort_by_cached_key(|file| Reverse(self.started_at(file)));
            }
        }
        Ok(files)
    }

    fn unsorted(&self) -> io::Result<Vec<RunFile>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        Ok(entries.filter_map(|entry| run_file(&entry.ok()?.path())).collect())
    }

    fn started_at(&self, file: &RunFile) -> Option<Timestamp> {
        let known =
            self.starts.lock().unwrap_or_else(PoisonError::into_inner).get(&file.run_id).copied();
        known.or_else(|| {
            // Read without the lock, so that no other reader waits for a disk.
            let started_at = self.entry(file)?.started_at;
            let mut starts = self.starts.lock().unwrap_or_else(PoisonError::into_inner);
            starts.insert(file.run_id.clone(), started_at);
            Some(started_at)
        })
    }

    /// Reads the head of a report; `None` if the file is not a report.
    pub fn entry(&self, file: &RunFile) -> Option<RunEntry> {
        read_entry(open_regular(&file.path).ok()?)
    }

    /// Returns the file of a run, if it exists.
    pub fn find(&self, run_id: &str) -> io::Result<Option<RunFile>> {
        Ok(self.unsorted()?.into_iter().find(|file| file.run_id.as_str() == run_id))
    }

    /// Returns the prompts of the newest reports, except those of one run. Skips reports that are
    /// unreadable or very large.
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
            let text = read_bounded(&file.path, MAX_RECENT_BYTES).ok()?;
            serde_json::from_slice::<Head>(&text).ok()
        });
        heads.flat_map(|head| head.cases).filter_map(|case| case.prompt).collect()
    }

    /// Reads a complete report.
    pub fn read(&self, file: &RunFile) -> io::Result<ReportDocument> {
        read_report(&file.path)
    }
}

/// Returns the files after that of a run in a list of [`RunArchive::files`]: the next page. If the
/// run is no more, its name shows where it was.
pub fn older_than(mut files: Vec<RunFile>, run_id: &str) -> Vec<RunFile> {
    if let Some(position) = files.iter().position(|file| file.run_id.as_str() == run_id) {
        return files.drain(position + 1..).collect();
    }
    files.retain(|file| file.run_id.as_str() < run_id);
    files
}

/// Reads the report at a path.
pub fn read_report(path: &Path) -> io::Result<ReportDocument> {
    let text = match read_bounded(path, MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let limit = MAX_BYTES / (1024 * 1024);
            return Err(io::Error::other(format!("it is larger than {limit} MB")));
        }
        text => text?,
    };
    serde_json::from_slice(&text).map_err(io::Error::other)
}

fn run_file(path: &Path) -> Option<RunFile> {
    let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let run_id = RunId::try_from(name.to_owned()).ok()?;
    let metadata = path.metadata().ok().filter(fs::Metadata::is_file)?;
    // Some file systems do not record modification times.
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Some(RunFile { run_id, size: metadata.len(), modified, path: path.to_owned() })
}

/// Maximum number of reports searched, newest first.
const MAX_REPORTS: usize = 20;
/// Maximum size of a report that is searched, in bytes.
const MAX_FORMER_BYTES: u64 = 64 * 1024 * 1024;

/// The results found.
#[derive(Debug, Default)]
pub struct ReusedResults {
    /// All trials of a case in order, by cache key.
    pub trials: BTreeMap<String, Vec<CaseResult>>,
    /// Unreadable reports, one line each.
    pub faults: Vec<String>,
}

/// The cache keys of a report; the rest of it is skipped during parsing.
#[derive(Deserialize)]
struct ReportCacheKeys {
    cases: Vec<CaseCacheKey>,
}

#[derive(Deserialize)]
struct CaseCacheKey {
    cache_key: Option<String>,
}

impl ReusedResults {
    /// Finds the newest results for these keys, each with the expected number of trials. All trials
    /// of a case must be from one report, and all must be scored.
    pub fn find(archive: &RunArchive, wanted: &BTreeMap<String, usize>) -> Self {
        let mut found = Self::default();
        let files = match archive.files() {
            Ok(files) => files,
            Err(error) => {
                found.faults.push(format!("{}: {error}", archive.folder().display()));
                return found;
            }
        };
        for file in files.into_iter().filter(|file| file.size <= MAX_FORMER_BYTES).take(MAX_REPORTS)
        {
            let is_missing =
                |key: &String| wanted.contains_key(key) && !found.trials.contains_key(key);
            if wanted.len() == found.trials.len() {
                break;
            }
            match read(&file, is_missing) {
                Ok(Some(report)) => found.add(&report, wanted),
                Ok(None) => {}
                Err(why) => found.faults.push(format!("{}: {why}", file.path().display())),
            }
        }
        found
    }

    fn add(&mut self, report: &ReportDocument, wanted: &BTreeMap<String, usize>) {
        let mut trials: BTreeMap<&String, Vec<CaseResult>> = BTreeMap::new();
        for (index, case) in report.cases.iter().enumerate() {
            let Some(key) = case.cache_key.as_ref().filter(|key| wanted.contains_key(*key)) else {
                continue;
            };
            let mut result = case.result(index);
            // A result that was itself reused keeps the run it originally came from.
            let run_id = result.unchanged_since.take().unwrap_or_else(|| report.run_id.clone());
            let note = format!("unchanged, from {run_id}");
            if !result.notes.contains(&note) {
                result.notes.push(note);
            }
            result.unchanged_since = Some(run_id);
            trials.entry(key).or_default().push(result);
        }
        for (key, mut trials) in trials {
            let is_whole = wanted.get(key) == Some(&trials.len());
            if is_whole && trials.iter().all(CaseResult::is_reusable) {
                trials.sort_by_key(|case| case.repeat);
                // Files come newest first, so results that are there already are newer.
                self.trials.entry(key.clone()).or_insert(trials);
            }
        }
    }
}

/// An earlier report cannot be read.
#[derive(Debug, thiserror::Error)]
enum FormerReportError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Reads the report if it contains one of the missing keys.
fn read(
    file: &RunFile,
    is_missing: impl Fn(&String) -> bool,
) -> Result<Option<ReportDocument>, FormerReportError> {
    let text = read_bounded(file.path(), MAX_BYTES)?;
    let keys: ReportCacheKeys = serde_json::from_slice(&text)?;
    if !keys.cases.iter().filter_map(|case| case.cache_key.as_ref()).any(is_missing) {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&text).map(Some)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::case::Interruption;
    use selftest_harness::sut::namespace::RunId;

    #[test]
    fn runs_of_one_minute_are_in_the_order_of_their_start() {
        let folder = tempfile::tempdir().unwrap();
        let text = fixture::rich_run().json().unwrap().unwrap();
        let write = |id: &str, second: u32| {
            let start = format!("\"timestamp\": \"2026-02-06T12:34:{second}Z\"");
            let text = text.replace("\"timestamp\": \"2026-02-06T12:34:56Z\"", &start);
            fs::write(folder.path().join(format!("{id}.json")), text).unwrap();
        };
        write("selftest-20260206-1234-m", 10);
        write("selftest-20260206-1234-a", 40);
        write("selftest-20260206-1234-z", 30);
        write("selftest-20260206-1235-b", 59);
        fs::write(folder.path().join("selftest-20260206-1234-x.json"), "{}").unwrap();
        let archive = RunArchive::new(folder.path());
        let names = |files: &[RunFile]| -> String {
            files.iter().filter_map(|file| file.run_id.as_str().chars().last()).collect()
        };
        let files = archive.files().unwrap();
        assert_eq!(names(&files), "bazmx");
        assert_eq!(names(&older_than(files.clone(), "selftest-20260206-1234-a")), "zmx");
        assert_eq!(names(&older_than(files, "selftest-20260206-1234-zz")), "azmx");
    }

    #[test]
    fn what_is_no_report_is_refused_for_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let why = |path: &Path| read_report(path).unwrap_err().to_string();
        assert_eq!(why(folder.path()), "it is a folder, expected a file");
        let large = folder.path().join("large.json");
        // A sparse file: it takes no space on the disk.
        File::create(&large).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(why(&large), "it is larger than 256 MB");
        fs::write(&large, "{").unwrap();
        assert!(why(&large).starts_with("EOF while parsing"), "{}", why(&large));
    }

    /// Two trials of each of two cases, the first of which was interrupted once.
    fn cases() -> Vec<Arc<CaseResult>> {
        let base = &fixture::passing_cases()[0];
        let case = |index: usize, key: &str, repeat| {
            let mut case = CaseResult { index, repeat: Some(repeat), ..(**base).clone() };
            case.cache_key = Some(key.to_owned());
            case
        };
        let mut cases = vec![case(0, "a", 1), case(1, "b", 1), case(2, "a", 2), case(3, "b", 2)];
        cases[2].interruption = Some(Interruption::SutTimeout("late".to_owned()));
        cases[3].unchanged_since =
            Some(RunId::try_from("selftest-20260101-0000-before".to_owned()).unwrap());
        cases.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn only_whole_and_scored_cases_stand_and_a_broken_report_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let text = fixture::state(&fixture::events(&cases())).json().unwrap().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(&format!("{}.json", fixture::run_id()), &text);
        write("selftest-20270101-0000-broken.json", &text[..text.len() / 2]);
        write("notes.json", "[]");
        let archive = RunArchive::new(folder.path());
        let wanted = [("a", 2), ("b", 2), ("c", 1)];
        let wanted = wanted.map(|(key, trials)| (key.to_owned(), trials)).into();
        let found = ReusedResults::find(&archive, &wanted);
        assert_eq!(found.faults.len(), 1, "{:?}", found.faults);
        assert!(found.faults[0].contains("-broken.json: EOF"), "{:?}", found.faults);
        assert_eq!(found.trials.keys().collect::<Vec<_>>(), ["b"], "`a` timed out once");
        let since: Vec<String> = found.trials["b"]
            .iter()
            .map(|case| case.unchanged_since.clone().unwrap().to_string())
            .collect();
        assert_eq!(
            since,
            [fixture::run_id().to_string(), "selftest-20260101-0000-before".to_owned()]
        );
        assert_eq!(found.trials["b"][0].notes, [format!("unchanged, from {}", since[0])]);
        let other = [("b".to_owned(), 3)].into();
        assert!(
            ReusedResults::find(&archive, &other).trials.is_empty(),
            "another number of trials"
        );
    }
}
