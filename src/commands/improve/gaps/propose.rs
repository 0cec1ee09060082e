//! `selftest improve gaps propose`, and the drafts of workers: a model drafts skills for gaps, an
//! experiment tries them, and they are proposed.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use selftest_app::{AppError, Drafter, Project};
use selftest_config::ResolvedConfig;
use selftest_grading::improve::proposal::{SkillProposal, SkillTest};
use selftest_service::grader::proposals::{BatchSummary, GenerationError};
use selftest_store::Store;
use selftest_text::one_line;
use serde_json::json;

use crate::args::StoreArgs;
use crate::args::sessions::database;
use crate::exit::Exit;
use crate::ui::{eprint, interruption, print};

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

pub(super) async fn execute(
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use selftest_harness::experiment::Conclusion;

    #[test]
    fn conclusions_have_the_words_that_lists_of_proposals_look_for() {
        use Conclusion::{Blocked, Harms, Helps, NotEnoughEvidence};
        let all = [Helps, Harms, NotEnoughEvidence, Blocked];
        assert_eq!(json!(all), json!(["helps", "harms", "not_enough_evidence", "blocked"]));
    }
}
