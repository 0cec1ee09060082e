//! `selftest gaps`, `selftest proposals` and `selftest route`: what could make the agent better.

use std::sync::Arc;

use anyhow::anyhow;
use jiff::Timestamp;
use serde_json::json;

use super::context::Project;
use super::failure::Failure;
use super::grade::database;
use super::model::FetchBar;
use super::sessions::{nothing_found, roots};
use super::{eprint, print, since};
use crate::cli::{GapsAction, GlobalArgs, ProposalsAction, SessionArgs};
use crate::config::Config;
use crate::exit::Exit;
use crate::grade::TaskType;
use crate::grader::decision::{DecisionFault, SkillPlace, accept, reject};
use crate::grader::proposals::{
    BatchSummary, Drafting, GenerationFault, NotTested, SkillGenerator,
};
use crate::grader::{Options, SelfGrader, routing};
use crate::improve::draft::TEMPLATE;
use crate::improve::gap::{Gap, GapStatus};
use crate::improve::gap_settings::GapSettings;
use crate::improve::proposal::{Proposal, ProposalStatus, SkillTest};
use crate::model::locate::Locator;
use crate::prompts::PromptLibrary;
use crate::redact::Redactor;
use crate::report::{improvement, plural};
use crate::store::Store;
use crate::text::one_line;

/// Most gaps and proposals of a list.
const LISTED: u64 = 10_000;

/// Why a drafted skill comes without a test.
const UNTESTED: &str = "experiments with drafted skills are not connected yet";

pub(super) async fn gaps(
    action: &GapsAction,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let config = project.load(Vec::new())?.config;
    match action {
        GapsAction::List { all } => {
            let store = Store::open(&database(&project, &args.db)).await?;
            let listed = store.gaps(None, LISTED).await;
            store.close().await;
            let mut gaps = listed?.items;
            gaps.retain(|gap| *all || matches!(gap.status, GapStatus::Open | GapStatus::Proposed));
            show_gaps(&gaps, args.json)
        }
        GapsAction::Detect { days, no_scan } => {
            let mut settings = config.gaps.clone();
            settings.lookback_days = days.unwrap_or(settings.lookback_days);
            detect(&project, config, args, &settings, *no_scan).await
        }
        GapsAction::Propose { gaps, model } => {
            let store = Store::open(&database(&project, &args.db)).await?;
            let done = propose(&project, &config, &store, gaps, model.as_deref(), args.json).await;
            store.close().await;
            done
        }
    }
}

fn show_gaps(gaps: &[Gap], as_json: bool) -> Result<Exit, Failure> {
    if as_json {
        print(&format!("{:#}\n", json!(gaps)))?;
    } else if gaps.is_empty() {
        eprint("no gaps; `selftest gaps detect` looks for them\n");
    } else {
        print(&improvement::gaps(gaps))?;
    }
    Ok(Exit::Passed)
}

async fn detect(
    project: &Project,
    config: Config,
    args: &SessionArgs,
    settings: &GapSettings,
    no_scan: bool,
) -> Result<Exit, Failure> {
    let roots = roots(project, args)?;
    let now = Timestamp::now();
    let options = Options {
        sources: roots.clone(),
        since: args.since.as_ref().map(|text| since::moment(text, now)).transpose()?,
        agent: args.agent.clone(),
        settings: config.grade,
        redactor: Redactor::new(project.environment.secret_values.iter().cloned()),
    };
    let grader = SelfGrader::open(&database(project, &args.db), options).await?;
    let detected = async {
        if !no_scan {
            grader.grade_new_sessions(&mut ()).await?;
        }
        grader.detect_gaps(settings, now).await
    };
    let detected = detected.await;
    grader.store().clone().close().await;
    let detected = detected?;
    for problem in &detected.problems {
        eprint(&format!("warning: {}\n", one_line(problem, 400)));
    }
    if args.json {
        print(&format!("{:#}\n", json!(detected)))?;
    } else {
        print(&improvement::gaps(&detected.gaps))?;
    }
    if detected.sessions == 0 && detected.repeated_requests == 0 {
        nothing_found(&roots);
        return Ok(Exit::NothingRan);
    }
    eprint(&format!(
        "{} looked at: {}, {} of them new, {} open again\n",
        plural(detected.sessions, "session"),
        plural(detected.gaps.len() as u64, "gap"),
        detected.new,
        detected.reopened
    ));
    Ok(Exit::Passed)
}

/// A generator by the model of that name, or by that of the configuration.
pub(super) async fn skill_generator(
    project: &Project,
    config: &Config,
    store: &Store,
    model: Option<&str>,
) -> Result<SkillGenerator, Failure> {
    let mut library = PromptLibrary::new(&project.folder);
    library.load(TEMPLATE)?;
    let redactor = Redactor::new(project.environment.secret_values.iter().cloned());
    let mut locator = Locator::new(
        project.environment.models.clone(),
        config.models.clone(),
        &project.folder,
        None,
        Arc::new(redactor.clone()),
    );
    let name = model.unwrap_or(&config.generator.model);
    let model = locator.model(name, &FetchBar::new(&project.environment)).await?;
    model.check().await?;
    for line in locator.chosen() {
        eprint(&format!("model {line}\n"));
    }
    let wanted = config.models.context_tokens;
    let context_tokens = model.context_limit().await.map_or(wanted, |limit| limit.min(wanted));
    let drafting = Drafting { temperature: config.generator.temperature, context_tokens };
    let experiment = Arc::new(NotTested(UNTESTED.to_owned()));
    Ok(SkillGenerator::new(
        store.clone(),
        model,
        drafting,
        config.gaps.clone(),
        Arc::new(library),
        redactor,
        experiment,
    ))
}

async fn propose(
    project: &Project,
    config: &Config,
    store: &Store,
    ids: &[String],
    model: Option<&str>,
    as_json: bool,
) -> Result<Exit, Failure> {
    for id in ids {
        if store.gap(id).await?.is_none() {
            let fault = GenerationFault::Unknown { id: one_line(id, 80) };
            return Err(Failure::usage(anyhow::Error::new(fault))
                .hint(Some("`selftest gaps list --all` shows their ids")));
        }
    }
    if ids.is_empty() && store.open_gaps().await?.items.is_empty() {
        eprint("no open gaps; `selftest gaps detect` looks for them\n");
        return Ok(Exit::NothingRan);
    }
    let generator = skill_generator(project, config, store, model).await?;
    if ids.is_empty() {
        let (summary, generated) = generator.run_skill_generation_batch().await;
        for one in &generated {
            let fault = one.fault.as_deref();
            told(&one.gap_id, one.proposal.as_ref(), fault.unwrap_or_default(), as_json)?;
        }
        if as_json {
            print(&format!("{:#}\n", json!({ "summary": summary, "gaps": generated })))?;
        }
        return Ok(match summary {
            BatchSummary::Completed { gaps_found, proposals_created, failures, .. } => {
                eprint(&format!(
                    "{gaps_found} open: {proposals_created} proposed, {failures} without a \
                     proposal\n"
                ));
                if proposals_created == 0 { Exit::Inconclusive } else { Exit::Passed }
            }
            BatchSummary::Failed { error, .. } => {
                return Err(Failure::setup(anyhow!("{error}")));
            }
        });
    }
    let mut proposals = Vec::new();
    for id in ids {
        match generator.generate_and_test_skill(id).await {
            Ok(proposal) => {
                told(id, Some(&proposal), "", as_json)?;
                proposals.push(proposal);
            }
            Err(fault) => told(id, None, &fault.to_string(), as_json)?,
        }
    }
    if as_json {
        print(&format!("{:#}\n", json!(proposals)))?;
    }
    Ok(if proposals.len() < ids.len() { Exit::Inconclusive } else { Exit::Passed })
}

/// Tells what became of a gap: a proposal on stdout, a fault on stderr.
fn told(gap: &str, made: Option<&Proposal>, fault: &str, as_json: bool) -> Result<(), Failure> {
    match made {
        Some(_) if as_json => Ok(()),
        Some(one) => {
            let test = one.experiment.as_ref().map(SkillTest::describe).unwrap_or_default();
            let test = one_line(&test, 400);
            print(&format!("{}: {} is proposed for {gap}; {test}\n", one.id, one.skill_name))
        }
        None => {
            eprint(&format!("no proposal for {gap}: {}\n", one_line(fault, 600)));
            Ok(())
        }
    }
}

pub(super) async fn proposals(
    action: &ProposalsAction,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let config = project.load(Vec::new())?.config;
    let store = Store::open(&database(&project, &args.db)).await?;
    let done = act(action, &project, &config, &store, args.json).await;
    store.close().await;
    done
}

async fn act(
    action: &ProposalsAction,
    project: &Project,
    config: &Config,
    store: &Store,
    as_json: bool,
) -> Result<Exit, Failure> {
    let proposal = match action {
        ProposalsAction::List { all } => {
            let status = (!*all).then_some(ProposalStatus::Proposed);
            let proposals = store.proposals(status, LISTED).await?.items;
            if as_json {
                print(&format!("{:#}\n", json!(proposals)))?;
            } else if proposals.is_empty() {
                eprint("no proposals; `selftest gaps propose` makes them\n");
            } else {
                print(&improvement::proposals(&proposals))?;
            }
            return Ok(Exit::Passed);
        }
        ProposalsAction::Show { proposal } => {
            let found = store.proposal(proposal).await?;
            let found = found.ok_or_else(|| DecisionFault::Unknown(one_line(proposal, 80)))?;
            let gap = store.gap(&found.gap_id).await?;
            if as_json {
                print(&format!("{:#}\n", json!({ "proposal": found, "gap": gap })))?;
            } else {
                print(&improvement::proposal(&found, gap.as_ref()))?;
            }
            return Ok(Exit::Passed);
        }
        ProposalsAction::Accept { proposal, output, reason } => {
            let folder = project.folder.join(&config.gaps.skills_folder);
            let output = output.as_ref().map(|output| project.path(output));
            let place = output.as_deref().map_or(SkillPlace::Folder(&folder), SkillPlace::File);
            accept(store, proposal, place, reason.as_deref()).await?
        }
        ProposalsAction::Reject { proposal, reason, again } => {
            let reason = reason.trim();
            if reason.is_empty() {
                return Err(Failure::usage(anyhow!("--reason is empty, expected words")));
            }
            reject(store, proposal, reason, *again).await?
        }
    };
    if as_json {
        print(&format!("{:#}\n", json!(proposal)))?;
    } else {
        let written = proposal.file.as_deref().map(|file| format!("; written to {file}"));
        let written = one_line(&written.unwrap_or_default(), 4096);
        print(&format!("{} is {}{written}\n", proposal.id, proposal.status))?;
    }
    Ok(Exit::Passed)
}

pub(super) async fn route(
    task_type: Option<TaskType>,
    args: &SessionArgs,
    global: &GlobalArgs,
) -> Result<Exit, Failure> {
    let project = Project::open(global)?;
    let settings = project.load(Vec::new())?.config.routing;
    let store = Store::open(&database(&project, &args.db)).await?;
    let agent = args.agent.as_deref();
    let found = routing(&store, &settings, task_type, agent, Timestamp::now()).await;
    store.close().await;
    let found = found?;
    if args.json {
        print(&format!("{:#}\n", json!(found)))?;
    } else if found.items.is_empty() {
        eprint("no grades of these days; `selftest grade latest` makes some\n");
    } else {
        print(&improvement::routing(&found))?;
    }
    let nothing = found.items.iter().all(|advice| advice.sessions == 0);
    Ok(if nothing { Exit::NothingRan } else { Exit::Passed })
}

impl From<DecisionFault> for Failure {
    fn from(fault: DecisionFault) -> Self {
        let hint = match &fault {
            DecisionFault::Store(_) => None,
            DecisionFault::Unknown(_) => Some("`selftest proposals list --all` shows their ids"),
            DecisionFault::Decided { .. } => Some("a decision stays"),
            DecisionFault::Exists(_) | DecisionFault::Name(_) | DecisionFault::Write { .. } => {
                Some("write it elsewhere with --output")
            }
        };
        match fault {
            DecisionFault::Store(error) => error.into(),
            fault @ DecisionFault::Write { .. } => {
                Self::setup(anyhow::Error::new(fault)).hint(hint)
            }
            fault => Self::usage(anyhow::Error::new(fault)).hint(hint),
        }
    }
}
