//! The start of a run: a new one, or what the journal of an interrupted one holds, and the digests
//! that tell whether both are the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use serde::Deserialize as _;
use serde_json::json;

use crate::error::AppError;
use crate::find_run::LATEST;
use crate::options::{CasesOf, REQUEST_VERSION, RunPurpose, RunRequest, RunSettings};
use crate::project::Project;
use selftest_config::{Config, FlagValue, ResolvedConfig};
use selftest_harness::event::RunHeader;
use selftest_harness::journal::{
    self, Journal, JournalError, JournalHeader, RecoveredRun, RunDigests,
};
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::namespace::RunId;
use selftest_models::journaled::{CallLog, StoredCall};
use selftest_reports::read_report;
use selftest_text::file::read_bounded_text;
use selftest_text::{digest, one_line};

/// Maximum size of the list of runs, in bytes.
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// The start of a run.
pub enum RunStart {
    /// A new run with this request.
    New(Box<RunRequest>),
    /// A resumed run.
    Resumption(Box<Resumption>),
}

/// An interrupted run to resume.
pub struct Resumption {
    recovered: RecoveredRun,
    /// Its finished cases in the order of the plan.
    cases: Vec<Arc<CaseResult>>,
}

/// State of a run from its earlier starts; empty for a new run.
pub struct EarlierState<'a> {
    /// Its finished calls, and those of others that share its models.
    pub log: Arc<CallLog>,
    /// Its finished cases.
    pub cases: &'a [Arc<CaseResult>],
    /// Header of its journal.
    pub header: Option<&'a JournalHeader>,
}

impl EarlierState<'_> {
    /// Returns the id of the resumed run, or a new one.
    pub fn run_id(&self) -> RunId {
        match self.header {
            Some(header) => header.run_id.clone(),
            None => RunId::fresh(selftest_clock::now()),
        }
    }
}

impl RunStart {
    /// Its finished calls. They are given away once.
    pub fn take_calls(&mut self) -> Vec<StoredCall> {
        match self {
            RunStart::New(_) => Vec::new(),
            RunStart::Resumption(resumed) => std::mem::take(&mut resumed.recovered.calls),
        }
    }

    /// Its finished cases in the order of the plan.
    pub fn cases(&self) -> &[Arc<CaseResult>] {
        match self {
            RunStart::New(_) => &[],
            RunStart::Resumption(resumed) => &resumed.cases,
        }
    }

    /// Returns the journal header of a resumed run.
    pub fn header(&self) -> Option<&JournalHeader> {
        match self {
            RunStart::New(_) => None,
            RunStart::Resumption(resumed) => Some(&resumed.recovered.header),
        }
    }

    /// State from earlier starts, with that log of its calls.
    pub fn earlier(&self, log: &Arc<CallLog>) -> EarlierState<'_> {
        EarlierState { log: Arc::clone(log), cases: self.cases(), header: self.header() }
    }

    /// Replaces `latest` by the run that it stands for.
    pub fn name_cases_of(&mut self, cases_of: CasesOf) {
        if let RunStart::New(request) = self {
            request.cases_of = Some(cases_of);
        }
    }

    /// Fails if this is not the same run. Digests that are not known yet are not compared.
    pub fn check(&self, now: &RunDigests) -> Result<(), AppError> {
        let RunStart::Resumption(resumed) = self else { return Ok(()) };
        let mut differ = resumed.recovered.header.differences(now);
        // The settings are compared before models are prepared, and the models afterwards.
        differ.retain(|name| now.contains_key(name));
        if differ.is_empty() {
            return Ok(());
        }
        let verb = if differ.len() == 1 && !differ[0].ends_with('s') { "is" } else { "are" };
        let what = format!("{} {verb}", differ.join(" and "));
        Err(failure(&JournalError::OtherRun { path: resumed.recovered.path.clone(), what }))
    }

    /// Opens the journal: a new one in the report folder, or that of the resumed run.
    pub fn journal(
        self,
        project: &Project,
        resolved: &ResolvedConfig,
        header: &RunHeader,
        digests: RunDigests,
    ) -> Result<Arc<Journal>, AppError> {
        let (folder, markdown_folder) = project.report_folders(resolved);
        // Files left by killed runs have no other owner.
        journal::remove_leftovers(&folder, &markdown_folder);
        let (path, opened) = match self {
            RunStart::New(request) => {
                let header = JournalHeader::new(header, digests, json!(request));
                let begun = Journal::create(&folder, &header);
                (folder, begun)
            }
            RunStart::Resumption(resumed) => {
                (resumed.recovered.path.clone(), Journal::resume(resumed.recovered))
            }
        };
        opened.map(Arc::new).map_err(|error| {
            AppError::setup(anyhow!("cannot write the journal in {}: {error}", path.display()))
                .hint(Some("set reports.json_folder to a folder that you can write to"))
        })
    }
}

impl Resumption {
    /// Opens the journal of a run: its id, its file, or `latest`.
    pub fn open(
        project: &Project,
        resolved: &ResolvedConfig,
        named: &str,
    ) -> Result<Self, AppError> {
        let (folder, _) = project.report_folders(resolved);
        let path = find(project, &folder, named)?;
        let mut recovered = journal::recover(&path).map_err(|error| failure(&error))?;
        if recovered.torn > 0 {
            project.notify(&format!(
                "note: {}: the last record is incomplete; its {} bytes are dropped\n",
                path.display(),
                recovered.torn
            ));
        }
        let cases = std::mem::take(&mut recovered.cases);
        // A case that was cut short is run again.
        let cases = cases.into_values().filter(CaseResult::is_settled).map(Arc::new).collect();
        Ok(Self { recovered, cases })
    }

    /// Opens the journal of a run if it has one.
    pub fn find(
        project: &Project,
        resolved: &ResolvedConfig,
        run: &RunId,
    ) -> Result<Option<Self>, AppError> {
        let (folder, _) = project.report_folders(resolved);
        match journal::find_journal(&folder, Some(run.as_str())) {
            Ok(None) => Ok(None),
            // An error of the search is found again, and reported, by `open`.
            _ => Self::open(project, resolved, run.as_str()).map(Some),
        }
    }

    /// Returns the request that started it, with the current options that change no result.
    pub fn request(
        &self,
        current: &RunSettings,
        flags: &[FlagValue],
        json: bool,
    ) -> Result<RunRequest, AppError> {
        let mut request = stored_request(&self.recovered.header.request, &self.recovered.path)?;
        request.flags.extend_from_slice(flags);
        if let RunPurpose::SelfComparison { json: as_json } = &mut request.purpose {
            *as_json |= json;
        }
        let settings = &mut request.settings;
        // A limit that ended the run would end it again at once.
        settings.limits = current.limits;
        // Switches of the first start stay on; there is no flag that turns one off.
        settings.gate.exit_zero |= current.gate.exit_zero;
        settings.gate.fail_fast |= current.gate.fail_fast;
        settings.trials.concurrency = current.trials.concurrency.or(settings.trials.concurrency);
        Ok(request)
    }

    /// Name of the run.
    pub fn run_id(&self) -> &RunId {
        &self.recovered.header.run_id
    }

    /// Returns true if nothing is left to do: every case has ended, the report says so, and the list of runs
    /// has it, which is written last.
    pub fn is_over(&self, json_folder: &Path, markdown_folder: &Path) -> bool {
        // The cases alone are not enough: a run may be killed between its last case and its last
        // report.
        self.cases.len() >= self.recovered.header.cases
            && read_bounded_text(&markdown_folder.join("index.md"), MAX_INDEX)
                .is_ok_and(|index| index.contains(self.run_id().as_str()))
            && read_report(&json_folder.join(format!("{}.json", self.run_id())))
                .is_ok_and(|report| report.complete && report.cases.len() == self.cases.len())
    }
}

/// Parses the request that a journal stores. One of another version is refused.
fn stored_request(stored: &serde_json::Value, path: &Path) -> Result<RunRequest, AppError> {
    let path = path.display();
    let hint = Some("start a new run without --resume");
    // Checked before anything else is read, so that another format is named as such and not by the
    // first field that differs.
    if stored.get("version").and_then(serde_json::Value::as_u64) != Some(REQUEST_VERSION.into()) {
        let error = anyhow!("the journal {path} is in another format and cannot be resumed");
        return Err(AppError::usage(error).hint(hint));
    }
    RunRequest::deserialize(stored).map_err(|error| {
        AppError::usage(anyhow!("the journal {path} does not state how its run started: {error}"))
            .hint(hint)
    })
}

/// Finds a journal by run id, file or `latest`.
fn find(project: &Project, folder: &Path, named: &str) -> Result<PathBuf, AppError> {
    let run = Some(named).filter(|named| *named != LATEST);
    let found = journal::find_journal(folder, run).map_err(|error| {
        AppError::usage(anyhow!("cannot look for journals in {}: {error}", folder.display()))
    })?;
    let file =
        || Some(project.path(Path::new(named))).filter(|path| run.is_some() && path.is_file());
    // The folder goes first: a file of the current folder may have the id of a run by chance.
    found.or_else(file).ok_or_else(|| {
        let (named, folder) = (one_line(named, 200), folder.display());
        let error = match run {
            None => anyhow!("there is no journal of a run in {folder}"),
            Some(_) => anyhow!(
                "there is no journal of a run `{named}`: neither in {folder}, nor is it a file"
            ),
        };
        AppError::usage(error).hint(Some(
            "name a run, its journal (reports/selftest/<run id>.journal), or `latest`; runs of \
             versions before journals cannot be resumed",
        ))
    })
}

fn failure(error: &JournalError) -> AppError {
    AppError::usage(anyhow!("{error}")).hint(Some(error.hint()))
}

/// Returns the digests that are known before any model call.
pub(crate) fn digests_of_settings(config: &Config, plan: &[PlannedCase]) -> RunDigests {
    let of = |value: &serde_json::Value| digest::json_sha256_hex(value.clone());
    let mut cases = Vec::new();
    for planned in plan {
        let limits = &planned.limits;
        let fixtures = planned.fixtures.iter().map(|fixture| &fixture.path);
        let one = serde_json::to_vec(&(
            (planned.index, &planned.scenario, &planned.frozen, &planned.grounds),
            (planned.repeat, &planned.skill, planned.threshold, limits.safety_floor),
            (limits.allow_minor_format_deviation, limits.max_questions_allowed, limits.timeout),
            (
                fixtures.collect::<Vec<_>>(),
                planned.given_skill.as_ref().map(|skill| skill.digest()),
            ),
        ));
        // A case that cannot be serialised counts as empty.
        cases.extend(one.unwrap_or_default());
    }
    BTreeMap::from([
        ("the cases".to_owned(), digest::sha256_hex(&cases)),
        ("`generator` in the config".to_owned(), of(&json!(config.generator))),
        ("`judge` in the config".to_owned(), of(&json!(config.judge))),
        ("`sut` in the config".to_owned(), of(&json!(config.sut))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_another_version_are_refused_in_one_line() {
        let request =
            RunRequest::new(RunSettings::default(), Vec::new(), None, RunPurpose::Results);
        let current = json!(request);
        let path = Path::new("x.journal");
        assert_eq!(json!(stored_request(&current, path).unwrap()), current);
        let old = json!({ "args": { "trials": {} }, "flags": [], "purpose": "results" });
        let mut newer = current;
        newer["version"] = json!(REQUEST_VERSION + 1);
        for stored in [old, newer] {
            let text = stored_request(&stored, path).unwrap_err().render(false);
            assert_eq!(
                text,
                "error: the journal x.journal is in another format and cannot be resumed\n\
                 hint: start a new run without --resume\n"
            );
        }
    }
}
