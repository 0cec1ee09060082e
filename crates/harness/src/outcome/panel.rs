//! The votes of a panel on each case, and the agreement of its judges. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agreement::JudgeAgreement;
use super::case::CaseResult;
use crate::judge::Verdict;
use selftest_stats::score::Score;
use selftest_text::wording::percent;

/// The vote of one judge of a panel on a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelVote {
    /// Full name of the model.
    pub model: String,
    /// True if the case passes by this judge's scores alone; null if a step has no score from it.
    pub pass: Option<bool>,
    /// The lowest overall score that it gave; null if it gave none.
    pub overall: Option<Score>,
}

/// Returns the votes on a case in the order of the panel; empty if no panel judged it.
pub fn votes(case: &CaseResult) -> Vec<PanelVote> {
    let judged = case.steps.iter().filter_map(|step| step.judgement.as_ref());
    let panels: Vec<_> =
        judged.map(|judgement| &judgement.panel).filter(|panel| !panel.is_empty()).collect();
    let Some(first) = panels.first() else { return Vec::new() };
    let vote = |(position, judge): (usize, &crate::judge::panel::PanelVerdict)| {
        let said = panels.iter().map(|panel| panel.get(position).map(|judge| &judge.verdict));
        // A judge needs a score for every step to have a vote.
        let cards: Option<Vec<_>> = said.map(|verdict| verdict.and_then(Verdict::card)).collect();
        let overalls = cards.iter().flatten().map(|card| card.overall);
        PanelVote {
            model: judge.model.clone(),
            pass: cards.as_ref().map(|cards| cards.iter().all(|card| case.passes_with(card))),
            overall: overalls.min_by(|a, b| a.get().total_cmp(&b.get())),
        }
    };
    // Every step lists the judges in the same order.
    first.iter().enumerate().map(vote).collect()
}

/// Returns true if some judges pass the case and others fail it.
pub fn is_disputed(votes: &[PanelVote]) -> bool {
    let says = |pass| votes.iter().any(|vote| vote.pass == Some(pass));
    says(true) && says(false)
}

/// One judge of a panel over a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PanelJudge {
    /// Full name of the model.
    pub model: String,
    /// Cases that pass by its scores.
    pub passed: u32,
    /// Cases that fail by its scores.
    pub failed: u32,
    /// Cases without a score from this judge. They are excluded and never count as zero.
    pub unscored: u32,
}

/// Two judges of a panel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelPair {
    /// Full name of the first model.
    pub a: String,
    /// Full name of the second model.
    pub b: String,
    /// Agreement on which cases pass; null if no case has a vote from both.
    pub agreement: Option<JudgeAgreement>,
}

/// The agreement of a panel over a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PanelAgreement {
    /// The judges in the order of the panel.
    pub judges: Vec<PanelJudge>,
    /// Cases with the votes of at least two judges.
    pub cases: u32,
    /// Cases on which all votes agree.
    pub unanimous: u32,
    /// Names of the cases on which they do not.
    pub disputed: Vec<String>,
    /// Every pair of judges.
    pub pairs: Vec<PanelPair>,
}

impl PanelAgreement {
    /// Computes the agreement over the cases of a run. Returns `None` if no panel judged.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseResult>) -> Option<Self> {
        let all = cases.into_iter().map(|case| (case.name(), votes(case)));
        let all: Vec<(String, Vec<PanelVote>)> =
            all.filter(|(_, votes)| !votes.is_empty()).collect();
        let models: Vec<String> = all.first()?.1.iter().map(|vote| vote.model.clone()).collect();
        let votes_of = |judge: usize| all.iter().map(move |(_, votes)| votes.get(judge)?.pass);
        let count = |judge: usize, wanted: Option<bool>| {
            let found = votes_of(judge).filter(|vote| *vote == wanted).count();
            u32::try_from(found).unwrap_or(u32::MAX)
        };
        let judges = models.iter().enumerate().map(|(judge, model)| PanelJudge {
            model: model.clone(),
            passed: count(judge, Some(true)),
            failed: count(judge, Some(false)),
            unscored: count(judge, None),
        });
        let mut pairs = Vec::new();
        for (a, first) in models.iter().enumerate() {
            for (b, second) in models.iter().enumerate().skip(a + 1) {
                let both = votes_of(a).zip(votes_of(b)).filter_map(|(a, b)| a.zip(b));
                let agreement = JudgeAgreement::of(&both.collect::<Vec<_>>());
                pairs.push(PanelPair { a: first.clone(), b: second.clone(), agreement });
            }
        }
        // A case with a single vote can be neither unanimous nor disputed.
        let voted = |votes: &[PanelVote]| votes.iter().filter(|vote| vote.pass.is_some()).count();
        let cases = all.iter().filter(|(_, votes)| voted(votes) > 1).count();
        let cases = u32::try_from(cases).unwrap_or(u32::MAX);
        let disputed = all.iter().filter(|(_, votes)| is_disputed(votes));
        let disputed: Vec<String> = disputed.map(|(name, _)| name.clone()).collect();
        let unanimous = cases.saturating_sub(u32::try_from(disputed.len()).unwrap_or(u32::MAX));
        Some(Self { judges: judges.collect(), cases, unanimous, disputed, pairs })
    }

    /// Returns sentences for reports: all judges together, then each pair, then each judge with
    /// missing scores.
    pub fn sentences(&self) -> Vec<String> {
        let Self { cases, unanimous, .. } = self;
        let noun = if *cases == 1 { "case" } else { "cases" };
        let mut sentences = vec![if *cases == 0 {
            "no case has the votes of two judges".to_owned()
        } else {
            let share = percent(f64::from(*unanimous) / f64::from(*cases));
            format!("all judges say the same of {unanimous} of {cases} {noun} ({share} %)")
        }];
        if !self.disputed.is_empty() {
            sentences.push(format!("disputed: {}", self.disputed.join(", ")));
        }
        for PanelPair { a, b, agreement } in &self.pairs {
            sentences.push(match agreement {
                Some(found) => format!("{a} and {b} agree {}", found.describe()),
                None => format!("{a} and {b} have voted on no case both"),
            });
        }
        let silent = self.judges.iter().filter(|judge| judge.unscored > 0);
        sentences.extend(silent.map(|judge| {
            let count = selftest_text::wording::cases(judge.unscored);
            format!("{}: no vote on {count}, which counts for nothing", judge.model)
        }));
        sentences
    }
}
