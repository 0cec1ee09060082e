//! `selftest improve gaps`: kinds of tasks that fail for want of a skill; and `propose`, also for the
//! drafts of workers: a model drafts skills for gaps, an experiment tries them, and they are
//! proposed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::args::sessions::{database, nothing_found, options};
use crate::args::{GlobalArgs, SessionArgs, StoreArgs};
use crate::commands::improve::MAX_LISTED;
use crate::exit::Exit;
use crate::ui::{self, eprint, interruption, print};
use selftest_app::{AppError, Drafter, Project};
use selftest_config::{Config, ResolvedConfig};
use selftest_grading::improve::gap::{
    GapStatus, ProposalStatus, SkillGap, SkillProposal, SkillTest,
};
use selftest_grading::report::improvement;
use selftest_service::grader::proposals::{
    BatchSummary, DecisionError, GenerationError, SkillDestination, accept, reject,
};
use selftest_service::grader::{GapDetection, SelfGrader};
use selftest_store::Store;
use selftest_text::one_line;
use selftest_text::wording::plural;

/// Actions on gaps.
#[derive(Debug, Subcommand)]
pub enum GapsAction {
    /// List gaps that are open or have a proposal, most sessions first
    List {
        /// Include closed and dismissed ones
        #[arg(long)]
        all: bool,
    },
    /// Grade new sessions and detect gaps in the last days
    Detect {
        /// Number of days; default: that of the configuration, 28
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3650))]
        days: Option<u32>,
        /// Do not scan; use existing grades
        #[arg(long)]
        no_scan: bool,
        /// Options that select sessions.
        #[command(flatten)]
        sessions: SessionArgs,
    },
    /// Let a model draft skills for open gaps, by default for three of them
    Propose(ProposeArgs),
}

pub(super) async fn execute(
    action: &GapsAction,
    store: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let resolved = project.load(Vec::new())?;
    match action {
        GapsAction::List { all } => {
            let opened = Store::open(&database(&project, &store.database)).await?;
            let listed = opened.gaps(None, MAX_LISTED).await;
            opened.close().await;
            let mut gaps = listed?.items;
            gaps.retain(|gap| *all || matches!(gap.status, GapStatus::Open | GapStatus::Proposed));
            show_gaps(&gaps, store.json)
        }
        GapsAction::Detect { days, no_scan, sessions } => {
            let mut settings = resolved.config.gaps.clone();
            settings.lookback_days = days.unwrap_or(settings.lookback_days);
            let options = options(&project, sessions)?;
            let roots = options.sources.clone();
            let now = selftest_clock::now();
            let grader = SelfGrader::open(&database(&project, &store.database), options).await?;
            let detected = async {
                if !no_scan {
                    grader.grade_new_sessions(&mut ()).await?;
                }
                grader.detect_gaps(&settings, now).await
            };
            // Looked at only after the database is closed, so that it is closed after an error too.
            let detected = detected.await;
            grader.store().clone().close().await;
            show_detected(&detected?, &roots, store.json)
        }
        GapsAction::Propose(told) => propose_skills(told, project, resolved, store).await,
    }
}

fn show_gaps(gaps: &[SkillGap], as_json: bool) -> Result<Exit, AppError> {
    if as_json {
        print(&format!("{:#}\n", json!(gaps)))?;
    } else if gaps.is_empty() {
        eprint("no gaps; `selftest improve gaps detect` looks for them\n");
    } else {
        print(&improvement::gaps(gaps))?;
    }
    Ok(Exit::Passed)
}

fn show_detected(
    detected: &GapDetection,
    roots: &[PathBuf],
    as_json: bool,
) -> Result<Exit, AppError> {
    for problem in &detected.problems {
        eprint(&format!("warning: {}\n", one_line(problem, 400)));
    }
    if as_json {
        print(&format!("{:#}\n", json!(detected)))?;
    } else {
        print(&improvement::gaps(&detected.gaps))?;
    }
    if detected.sessions == 0 && detected.repeated_requests == 0 {
        nothing_found(roots);
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

/// Options of drafting skills.
#[derive(Debug, Args)]
pub struct ProposeArgs {
    /// Gaps to draft skills for, whatever their status; default: open ones
    #[arg(value_name = "GAP")]
    pub gaps: Vec<String>,
    /// The model; default: generator.model of the configuration
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Test each drafted skill on the cases of this suite of `selftest suite freeze`; default:
    /// gaps.suite of the configuration
    #[arg(long, value_name = "FILE")]
    pub suite: Option<PathBuf>,
    /// Number of times to run each case with the skill, and without it; default: gaps.repeats of the
    /// configuration
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeats: Option<u32>,
}

async fn propose_skills(
    told: &ProposeArgs,
    project: Project,
    mut resolved: ResolvedConfig,
    args: &StoreArgs,
) -> Result<Exit, AppError> {
    let settings = &mut resolved.config.gaps;
    settings.repeats = told.repeats.unwrap_or(settings.repeats);
    settings.suite = told.suite.clone().or(settings.suite.take());
    let interrupted = interruption()?;
    let store = Store::open(&database(&project, &args.database)).await?;
    let drafter = Drafter::new(Arc::new(project), Arc::new(resolved));
    let done = tokio::select! {
        done = propose(told, drafter, &store, args.json) => done,
        // What was proposed by then is kept.
        () = interrupted => Ok(Exit::Interrupted),
    };
    store.close().await;
    done
}

async fn propose(
    told: &ProposeArgs,
    drafter: Drafter,
    store: &Store,
    as_json: bool,
) -> Result<Exit, AppError> {
    let ids = &told.gaps;
    for id in ids {
        if store.gap(id).await?.is_none() {
            let fault = GenerationError::Unknown { id: one_line(id, 80) };
            return Err(AppError::usage(anyhow::Error::new(fault))
                .hint(Some("`selftest improve gaps list --all` shows their ids")));
        }
    }
    if ids.is_empty() && store.open_gaps().await?.items.is_empty() {
        eprint("no open gaps; `selftest improve gaps detect` looks for them\n");
        return Ok(Exit::NothingRan);
    }
    // After all ids are known to exist: preparing a model may take minutes.
    let generator = drafter.generator(store, told.model.as_deref()).await?;
    if ids.is_empty() {
        let (summary, generated) = generator.run_skill_generation_batch().await;
        for one in &generated {
            let fault = one.fault.as_deref();
            tell(&one.gap_id, one.proposal.as_ref(), fault.unwrap_or_default(), as_json)?;
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
                // A model that writes no valid draft is no failure of the project.
                if proposals_created == 0 { Exit::Inconclusive } else { Exit::Passed }
            }
            BatchSummary::Failed { error, .. } => {
                return Err(AppError::setup(anyhow!("{error}")));
            }
        });
    }
    let mut proposals = Vec::new();
    for id in ids {
        match generator.generate_and_test_skill(id).await {
            Ok(proposal) => {
                tell(id, Some(&proposal), "", as_json)?;
                proposals.push(proposal);
            }
            // The other gaps are still tried.
            Err(fault) => tell(id, None, &fault.to_string(), as_json)?,
        }
    }
    if as_json {
        print(&format!("{:#}\n", json!(proposals)))?;
    }
    Ok(if proposals.len() < ids.len() { Exit::Inconclusive } else { Exit::Passed })
}

/// Tells what became of a gap: a proposal on stdout, a fault on stderr.
fn tell(
    gap: &str,
    made: Option<&SkillProposal>,
    fault: &str,
    as_json: bool,
) -> Result<(), AppError> {
    match made {
        // The JSON at the end has it.
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

/// Actions on proposals.
#[derive(Debug, Subcommand)]
pub enum ProposalsAction {
    /// List proposals that wait for a decision, newest first
    List {
        /// Include accepted and rejected ones
        #[arg(long)]
        all: bool,
    },
    /// Print a proposed skill, its purpose and its test result
    Show {
        /// Its id
        proposal: String,
    },
    /// Write the skill to a file and close its gap; does not activate it
    Accept {
        /// Its id
        proposal: String,
        /// The file; default: <name>/SKILL.md in the skills folder of the configuration
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Reject the skill and dismiss its gap
    Reject {
        /// Its id
        proposal: String,
        /// Reason, for later readers
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Open the gap again, so that another skill is drafted for it
        #[arg(long)]
        again: bool,
    },
}

pub(crate) async fn proposals(
    action: &ProposalsAction,
    args: &StoreArgs,
    global: &GlobalArgs,
) -> Result<Exit, AppError> {
    let project = ui::open(global)?;
    let config = project.load(Vec::new())?.config;
    let store = Store::open(&database(&project, &args.database)).await?;
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
) -> Result<Exit, AppError> {
    let proposal = match action {
        ProposalsAction::List { all } => {
            let status = (!*all).then_some(ProposalStatus::Proposed);
            let proposals = store.proposals(status, MAX_LISTED).await?.items;
            if as_json {
                print(&format!("{:#}\n", json!(proposals)))?;
            } else if proposals.is_empty() {
                eprint("no proposals; `selftest improve gaps propose` makes them\n");
            } else {
                print(&improvement::proposals(&proposals))?;
            }
            return Ok(Exit::Passed);
        }
        ProposalsAction::Show { proposal } => {
            let found = store.proposal(proposal).await?;
            let found = found.ok_or_else(|| DecisionError::Unknown(one_line(proposal, 80)))?;
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
            let place =
                output.as_deref().map_or(SkillDestination::Folder(&folder), SkillDestination::File);
            accept(store, proposal, place, reason.as_deref()).await?
        }
        ProposalsAction::Reject { proposal, reason, again } => {
            let reason = reason.trim();
            if reason.is_empty() {
                return Err(AppError::usage(anyhow!("--reason is empty, expected words")));
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

#[cfg(test)]
mod tests {
    use selftest_harness::experiment::Conclusion;
    use serde_json::json;

    #[test]
    fn conclusions_have_the_words_that_lists_of_proposals_look_for() {
        use Conclusion::{Blocked, Harms, Helps, NotEnoughEvidence};
        let all = [Helps, Harms, NotEnoughEvidence, Blocked];
        assert_eq!(json!(all), json!(["helps", "harms", "not_enough_evidence", "blocked"]));
    }
}
