//! Reuses results of earlier runs for cases whose dependencies have not changed. Reads the JSON
//! reports; an unreadable report only loses its own results.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use serde::Deserialize;

use super::archive::{RunArchive, RunFile};
use super::document::ReportDocument;
use selftest_harness::outcome::CaseResult;

/// Maximum number of reports searched, newest first.
const MAX_REPORTS: usize = 20;
/// Maximum size of a report that is searched, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

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
        for file in files.into_iter().filter(|file| file.size <= MAX_BYTES).take(MAX_REPORTS) {
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
    let text = fs::read(file.path())?;
    let keys: ReportCacheKeys = serde_json::from_slice(&text)?;
    if !keys.cases.iter().filter_map(|case| case.cache_key.as_ref()).any(is_missing) {
        return Ok(None);
    }
    Ok(serde_json::from_slice(&text).map(Some)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::case::Interruption;
    use selftest_harness::sut::namespace::RunId;

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
