//! Finds and reads files with results in the folders around a session.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use selftest_grading::grade::GradeRecord;
use selftest_grading::grade::beside::{
    RESULT_FILES, TaskResult, apply_results, read_results, results_of,
};
use selftest_grading::grade::heuristic::{GradingContext, GradingResult, RuleGrader};
use selftest_sessions::{SessionFile, SessionReadError, SessionSource};
use selftest_text::file::read_bounded_text;

use super::SelfGrader;

/// Maximum size in bytes of a file with results.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// Number of folders above a session in which results are looked for.
const MAX_FOLDERS: usize = 4;

/// Results of the folders around sessions; each folder is read once.
pub(super) struct ResultFiles {
    /// Number of session files in each folder.
    sessions: HashMap<PathBuf, usize>,
    folders: Mutex<HashMap<PathBuf, Arc<Vec<TaskResult>>>>,
}

impl ResultFiles {
    /// Prepares for the sessions of a scan, with canonical sources. The neighbours of a file that is
    /// itself a source are not known: it may not be alone in its folder.
    pub(super) fn new(files: &[SessionFile], sources: &[PathBuf]) -> Self {
        let mut sessions: HashMap<PathBuf, usize> = HashMap::new();
        let named: HashSet<&Path> = sources.iter().map(PathBuf::as_path).collect();
        // The paths that were found begin with a canonical source, and no link is followed below.
        let is_named = |path: &Path| named.contains(path);
        for file in files {
            let path = file.source.path();
            if let Some(folder) = path.parent().filter(|_| !is_named(path)) {
                *sessions.entry(folder.to_owned()).or_default() += 1;
            }
        }
        Self { sessions, folders: Mutex::default() }
    }

    /// Adds the results around a file to the grades of its sessions.
    pub(super) fn apply(&self, path: &Path, grades: Vec<GradeRecord>) -> Vec<GradeRecord> {
        let is_single = grades.len() == 1;
        let folders: Vec<(bool, Arc<Vec<TaskResult>>)> = path
            .ancestors()
            .skip(1)
            .take(MAX_FOLDERS)
            .enumerate()
            .map(|(level, folder)| {
                // In the session's own folder another session could be meant; further up only the
                // layout of a trial says that the folder is the task's.
                let is_own =
                    level == 0 && self.sessions.get(folder).is_some_and(|sessions| *sessions == 1);
                (is_single && (is_own || is_trial(folder)), self.folder(folder))
            })
            .filter(|(_, results)| !results.is_empty())
            .collect();
        if folders.is_empty() {
            return grades;
        }
        let with_results = |grade: GradeRecord| {
            let joined = folders.iter().flat_map(|(is_alone, results)| {
                results_of(&grade.session_id, &grade.session_file, results, *is_alone)
            });
            let joined: Vec<&TaskResult> = joined.collect();
            apply_results(grade, &joined)
        };
        grades.into_iter().map(with_results).collect()
    }

    fn folder(&self, folder: &Path) -> Arc<Vec<TaskResult>> {
        // Results are only added, so a panic of another thread leaves them usable.
        let lock = || self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(folder) {
            return known.clone();
        }
        let read = RESULT_FILES.iter().filter_map(|name| {
            let path = folder.join(name);
            // A pipe would wait for its writer.
            path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            // A part of the results would be other results.
            let text = read_bounded_text(&path, MAX_FILE).ok()?;
            Some(read_results(&path.to_string_lossy(), &text))
        });
        let results = Arc::new(read.flatten().collect::<Vec<_>>());
        lock().insert(folder.to_owned(), results.clone());
        results
    }
}

/// Grades of single files, without the database.
impl SelfGrader {
    /// Grades the sessions of one file anew, without the database.
    ///
    /// # Errors
    ///
    /// The reason why the file cannot be read as a session.
    pub fn grade_file(&self, path: &Path) -> Result<Vec<GradeRecord>, SessionReadError> {
        let shown = path.to_string_lossy();
        let now = selftest_clock::now();
        let context = GradingContext { session_file: &shown, graded_at: now };
        let (weights, redactor) = (self.options.settings.weights, &self.options.redactor);
        let mut rules = RuleGrader::new(context, weights, redactor);
        selftest_sessions::read(&SessionSource::file(path), &mut rules)?;
        let graded = rules.into_gradings().into_iter().filter_map(|grading| match grading {
            GradingResult::Graded(record) => Some(*record),
            GradingResult::NotGradable { .. } => None,
        });
        Ok(ResultFiles::new(&[], &[]).apply(path, graded.collect()))
    }
}

/// Returns true for the folder of one trial: a verifier's folder stands in it.
fn is_trial(folder: &Path) -> bool {
    folder.join("verifier").is_dir()
}
