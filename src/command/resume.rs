//! `--resume`: a run that was broken off goes on from its journal. What finished is neither asked nor
//! run again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::compare;
use super::context::Project;
use super::eprint;
use super::failure::Failure;
use super::named_run::LATEST;
use crate::cli::{ExperimentArgs, Format, RunArgs};
use selftest_config::{Config, FlagValue, ResolvedConfig};
use selftest_harness::event::RunHeader;
use selftest_harness::experiment::Arms;
use selftest_harness::journal::{
    self, Journal, JournalError, JournalHeader, RecoveredRun, RunDigests,
};
use selftest_harness::outcome::CaseResult;
use selftest_harness::run::plan::PlannedCase;
use selftest_harness::sut::namespace::RunId;
use selftest_models::journaled::{CallLog, StoredCall};
use selftest_reports::read_report;
use selftest_text::digest;
use selftest_text::one_line;

/// The command that began a run, as its journal keeps it. Beside it stand flags of the configuration,
/// which hold what other commands than `selftest` itself set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    /// The flags of the run.
    pub(super) args: RunArgs,
    /// The flags that set keys of the configuration.
    pub(super) flags: Vec<FlagValue>,
    /// The run whose cases it has; absent where they are those of a suite or of the configuration.
    pub(super) cases_of: Option<CasesOf>,
    /// How the command uses the run at its end.
    pub(super) purpose: Purpose,
}

/// The purpose for which a command runs cases.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    /// For their results.
    Results,
    /// The odd of its repeats are held against the even ones.
    Aa {
        /// Whether JSON is printed.
        json: bool,
    },
    /// It is compared with the run whose cases it has.
    Replay {
        /// How the comparison is printed.
        format: compare::Format,
        /// Whether a run that is worse is a failure.
        fail_if_worse: bool,
    },
    /// It is one arm of an experiment.
    Experiment(Box<ExperimentRequest>),
}

/// The experiment that two runs are the arms of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ExperimentRequest {
    /// Its flags.
    pub(super) told: ExperimentArgs,
    /// The runs.
    pub(super) arms: Arms<RunId>,
    /// Whether JSON is printed.
    pub(super) json: bool,
    /// The text of a skill that is in no file.
    pub(super) drafted: Option<String>,
}

/// The run whose cases another one has.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CasesOf {
    /// Those that did not pass.
    NotPassed(String),
    /// All of them.
    Replayed(String),
    /// All of them, with their answers, which are judged again.
    Rejudged(String),
}

/// The start of a run.
pub(super) enum Start {
    /// It begins, by this command.
    New(Box<Request>),
    /// It goes on.
    Resumed(Box<Resumed>),
}

/// A run that goes on.
pub(super) struct Resumed {
    recovered: RecoveredRun,
    /// Its finished cases in the order of the plan.
    cases: Vec<Arc<CaseResult>>,
}

/// State of a run from earlier starts of it: nothing, where it begins.
pub(super) struct Earlier<'a> {
    /// Its finished calls, and those of others that share its models.
    pub(super) log: Arc<CallLog>,
    /// Its finished cases.
    pub(super) cases: &'a [Arc<CaseResult>],
    /// Its beginning.
    pub(super) header: Option<&'a JournalHeader>,
}

impl Start {
    /// Its finished calls. They are given away once.
    pub(super) fn take_calls(&mut self) -> Vec<StoredCall> {
        match self {
            Start::New(_) => Vec::new(),
            Start::Resumed(resumed) => std::mem::take(&mut resumed.recovered.calls),
        }
    }

    /// Its finished cases in the order of the plan.
    pub(super) fn cases(&self) -> &[Arc<CaseResult>] {
        match self {
            Start::New(_) => &[],
            Start::Resumed(resumed) => &resumed.cases,
        }
    }

    /// The beginning of a run that goes on.
    pub(super) fn header(&self) -> Option<&JournalHeader> {
        match self {
            Start::New(_) => None,
            Start::Resumed(resumed) => Some(&resumed.recovered.header),
        }
    }

    /// State from earlier starts, with that log of its calls.
    pub(super) fn earlier(&self, log: &Arc<CallLog>) -> Earlier<'_> {
        Earlier { log: Arc::clone(log), cases: self.cases(), header: self.header() }
    }

    /// Names the run whose cases it has, where only `latest` was said.
    pub(super) fn name_cases_of(&mut self, cases_of: CasesOf) {
        if let Start::New(request) = self {
            request.cases_of = Some(cases_of);
        }
    }

    /// Refuses to go on with what is not the same run. Digests that are not known yet are not
    /// compared.
    pub(super) fn check(&self, now: &RunDigests) -> Result<(), Failure> {
        let Start::Resumed(resumed) = self else { return Ok(()) };
        let mut differ = resumed.recovered.header.differences(now);
        differ.retain(|name| now.contains_key(name));
        if differ.is_empty() {
            return Ok(());
        }
        let verb = if differ.len() == 1 && !differ[0].ends_with('s') { "is" } else { "are" };
        let what = format!("{} {verb}", differ.join(" and "));
        Err(failure(&JournalError::OtherRun { path: resumed.recovered.path.clone(), what }))
    }

    /// Opens the journal: a new one in the folder of the reports, or the one of the run that goes on.
    pub(super) fn journal(
        self,
        project: &Project,
        resolved: &ResolvedConfig,
        header: &RunHeader,
        digests: RunDigests,
    ) -> Result<Arc<Journal>, Failure> {
        let (folder, markdown_folder) = project.report_folders(resolved);
        // What was left by runs that were killed has no other owner.
        journal::remove_leftovers(&folder, &markdown_folder);
        let (path, opened) = match self {
            Start::New(request) => {
                let header = JournalHeader::new(header, digests, json!(request));
                let begun = Journal::create(&folder, &header);
                (folder, begun)
            }
            Start::Resumed(resumed) => {
                (resumed.recovered.path.clone(), Journal::resume(resumed.recovered))
            }
        };
        opened.map(Arc::new).map_err(|error| {
            Failure::setup(anyhow!("cannot write the journal in {}: {error}", path.display()))
                .hint(Some("set reports.json_folder to a folder that you can write to"))
        })
    }
}

impl Resumed {
    /// Opens the journal of a run: its id, its file, or `latest`.
    pub(super) fn open(
        project: &Project,
        resolved: &ResolvedConfig,
        named: &str,
    ) -> Result<Self, Failure> {
        let (folder, _) = project.report_folders(resolved);
        let path = find(project, &folder, named)?;
        let mut recovered = journal::recover(&path).map_err(|error| failure(&error))?;
        if recovered.torn > 0 {
            eprint(&format!(
                "note: {}: the last record was not written to its end; its {} bytes are dropped\n",
                path.display(),
                recovered.torn
            ));
        }
        let cases = std::mem::take(&mut recovered.cases);
        let cases = cases.into_values().filter(CaseResult::is_settled).map(Arc::new).collect();
        Ok(Self { recovered, cases })
    }

    /// Opens the journal of that run, where it has one.
    pub(super) fn find(
        project: &Project,
        resolved: &ResolvedConfig,
        run: &RunId,
    ) -> Result<Option<Self>, Failure> {
        let (folder, _) = project.report_folders(resolved);
        match journal::find_journal(&folder, Some(run.as_str())) {
            Ok(None) => Ok(None),
            _ => Self::open(project, resolved, run.as_str()).map(Some),
        }
    }

    /// The command that began it, with those flags of today that change no result.
    pub(super) fn request(&self, args: &RunArgs, flags: &[FlagValue]) -> Result<Request, Failure> {
        let request = serde_json::from_value(self.recovered.header.request.clone());
        let mut request: Request = request.map_err(|error| {
            let path = self.recovered.path.display();
            Failure::usage(anyhow!("the journal {path} does not say how its run began: {error}"))
                .hint(Some("start a new run without --resume"))
        })?;
        request.flags.extend_from_slice(flags);
        if args.format == Format::Json
            && let Purpose::Aa { json } = &mut request.purpose
        {
            *json = true;
        }
        let then = &mut request.args;
        then.format = args.format;
        then.quiet = args.quiet;
        then.limits = args.limits;
        then.gate.exit_zero |= args.gate.exit_zero;
        then.gate.fail_fast |= args.gate.fail_fast;
        then.trials.concurrency = args.trials.concurrency.or(then.trials.concurrency);
        Ok(request)
    }

    /// Name of the run.
    pub(super) fn run_id(&self) -> &RunId {
        &self.recovered.header.run_id
    }

    /// Whether nothing is left to do: every case has ended, the report says so, and the list of runs
    /// has it, which is written last.
    pub(super) fn is_over(&self, json_folder: &Path, markdown_folder: &Path) -> bool {
        self.cases.len() >= self.recovered.header.cases
            && fs::read_to_string(markdown_folder.join("index.md"))
                .is_ok_and(|index| index.contains(self.run_id().as_str()))
            && read_report(&json_folder.join(format!("{}.json", self.run_id())))
                .is_ok_and(|report| report.complete && report.cases.len() == self.cases.len())
    }
}

/// The journal that is meant.
fn find(project: &Project, folder: &Path, named: &str) -> Result<PathBuf, Failure> {
    let run = Some(named).filter(|named| *named != LATEST);
    let found = journal::find_journal(folder, run).map_err(|error| {
        Failure::usage(anyhow!("cannot look for journals in {}: {error}", folder.display()))
    })?;
    let file =
        || Some(project.path(Path::new(named))).filter(|path| run.is_some() && path.is_file());
    found.or_else(file).ok_or_else(|| {
        let (named, folder) = (one_line(named, 200), folder.display());
        let error = match run {
            None => anyhow!("there is no journal of a run in {folder}"),
            Some(_) => anyhow!(
                "there is no journal of a run `{named}`: neither in {folder}, nor is it a file"
            ),
        };
        Failure::usage(error).hint(Some(
            "name a run, its journal (reports/selftest/<run id>.journal), or `latest`; runs of \
             versions before journals cannot be resumed",
        ))
    })
}

fn failure(error: &JournalError) -> Failure {
    Failure::usage(anyhow!("{error}")).hint(Some(error.hint()))
}

/// Digests of what is known before any model is asked.
pub(super) fn digests_of_settings(config: &Config, plan: &[PlannedCase]) -> RunDigests {
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
        // What cannot be written down is as different as nothing at all.
        cases.extend(one.unwrap_or_default());
    }
    BTreeMap::from([
        ("the cases".to_owned(), digest::sha256_hex(&cases)),
        ("`generator` in the config".to_owned(), of(&json!(config.generator))),
        ("`judge` in the config".to_owned(), of(&json!(config.judge))),
        ("`sut` in the config".to_owned(), of(&json!(config.sut))),
    ])
}
