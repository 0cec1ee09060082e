//! Agreement about the same answers: of two judges, of the judges of a panel, of the samples of one
//! judge, and of the verdicts before and after answers were judged again. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::case::{CaseResult, CaseStep};
use crate::judge::Verdict;
use selftest_stats::score::Score;
use selftest_stats::{Interval, cohen_kappa, variance_components, wilson};
use selftest_text::wording::{cases, percent, plural};

/// The agreement of two judges on the cases that both decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeAgreement {
    /// Cases that both judges decided by scores.
    pub cases: u32,
    /// Cases with the same verdict from both.
    pub same: u32,
    /// 95 % Wilson interval of the share of equal verdicts.
    pub interval: Option<Interval>,
    /// Cohen's kappa: 1 is perfect agreement, 0 is chance. Absent if both judges gave the same
    /// verdict to every case, which chance would produce as well.
    pub kappa: Option<f64>,
    /// Its 95 % interval. Absent if the cases have no spread to estimate one from.
    pub kappa_interval: Option<Interval>,
}

impl JudgeAgreement {
    /// Computes the agreement from pairs of passes. Returns `None` without pairs.
    pub fn of(pairs: &[(bool, bool)]) -> Option<Self> {
        let cases = u32::try_from(pairs.len()).ok().filter(|cases| *cases > 0)?;
        let same = pairs.iter().filter(|(a, b)| a == b).count();
        let same = u32::try_from(same).unwrap_or(cases);
        let categories: Vec<(u8, u8)> =
            pairs.iter().map(|(a, b)| (u8::from(*a), u8::from(*b))).collect();
        let kappa = cohen_kappa(&categories);
        Some(Self {
            cases,
            same,
            interval: wilson(same, cases),
            kappa: kappa.map(|found| found.kappa),
            kappa_interval: kappa
                // Without spread, the interval would be a single point.
                .filter(|found| found.standard_error > 1e-9)
                .map(|found| found.interval),
        })
    }

    /// Returns the share of cases with equal verdicts.
    pub fn share(&self) -> f64 {
        f64::from(self.same) / f64::from(self.cases.max(1))
    }

    /// Formats the agreement for reports: `on 10 of 12 cases (83 %), kappa 0.62 [0.20, 1.00]`.
    pub fn describe(&self) -> String {
        let Self { cases, same, .. } = self;
        let noun = if *cases == 1 { "case" } else { "cases" };
        let kappa = match (self.kappa, self.kappa_interval) {
            (Some(kappa), Some(Interval { low, high })) => {
                format!("kappa {kappa:.2} [{low:.2}, {high:.2}]")
            }
            (Some(kappa), None) => format!("kappa {kappa:.2}, without an interval"),
            (None, _) => "no kappa, since all verdicts are the same".to_owned(),
        };
        format!("on {same} of {cases} {noun} ({} %), {kappa}", percent(self.share()))
    }
}

/// The samples of the judge over a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeSamples {
    /// Answers that a judge was asked about more than once; with a panel, counted once per judge.
    pub answers: u32,
    /// Verdicts on these answers.
    pub samples: u32,
    /// Verdicts without a score. They are excluded from means and variances.
    pub unscored: u32,
    /// Answers that pass by some samples and fail by others.
    pub split: u32,
    /// Variance of the overall scores of one answer, pooled over all answers; null if no answer has
    /// two. It contributes 1/n of itself to a mean of n samples.
    pub variance: Option<f64>,
}

impl JudgeSamples {
    /// Computes the statistics of a run. Returns `None` if the judge was asked only once about each
    /// answer.
    pub fn of<'a>(cases: impl IntoIterator<Item = &'a CaseResult>) -> Option<Self> {
        let (mut answers, mut samples, mut unscored, mut split) = (0, 0, 0, 0);
        let mut scores: Vec<Vec<f64>> = Vec::new();
        for case in cases {
            for samples_of_one in case.steps.iter().flat_map(CaseStep::repeated_verdicts) {
                answers += 1;
                samples += samples_of_one.len();
                let cards: Vec<_> = samples_of_one.iter().filter_map(Verdict::card).collect();
                unscored += samples_of_one.len() - cards.len();
                let pass = |card: &&_| case.passes_with(card);
                split += u32::from(cards.iter().any(pass) && !cards.iter().all(pass));
                scores.push(cards.iter().map(|card| card.overall.get()).collect());
            }
        }
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        (answers > 0).then(|| Self {
            answers,
            samples: count(samples),
            unscored: count(unscored),
            split,
            // All answers as trials of one case: only the variance within an answer is taken from
            // it.
            variance: variance_components(&[scores]).judge,
        })
    }

    /// Returns the statistics as one sentence for reports.
    pub fn sentence(&self) -> String {
        let mut parts = vec![format!(
            "{} on {}",
            plural(self.samples, "verdict"),
            plural(self.answers, "answer")
        )];
        if let Some(variance) = self.variance {
            let deviation = variance.sqrt();
            parts.push(format!("standard deviation on one answer {deviation:.2}"));
        }
        if self.split > 0 {
            let verb = if self.split == 1 { "passes" } else { "pass" };
            parts.push(format!("{} {verb} by some of them only", plural(self.split, "answer")));
        }
        if self.unscored > 0 {
            parts.push(format!("{} without a score", plural(self.unscored, "verdict")));
        }
        parts.join(", ")
    }
}

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
            // A case is as good as its weakest step.
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
        // A case without a judged step, such as one that checks decide alone, has no votes.
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

/// Changes in the verdicts of a rejudged run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerdictChanges {
    /// Number of cases judged again so far.
    pub cases: u32,
    /// Failed before, passed now.
    pub fail_to_pass: u32,
    /// Passed before, failed now.
    pub pass_to_fail: u32,
    /// Without a verdict before, with one now.
    pub gained: u32,
    /// With a verdict before, without one now.
    pub lost: u32,
    /// Agreement of the two judges on the cases that scores decided both times. Absent if there is
    /// no such case.
    pub agreement: Option<JudgeAgreement>,
}

impl VerdictChanges {
    /// Compares the cases that have an earlier verdict.
    pub fn of<'a>(results: impl IntoIterator<Item = &'a CaseResult>) -> Self {
        let (mut changes, mut pairs) = (Self::default(), Vec::new());
        for case in results {
            let Some(former) = case.former else { continue };
            let (then, now) = (former.status.pass(), case.status().0.pass());
            changes.cases += 1;
            match (then, now) {
                (Some(false), Some(true)) => changes.fail_to_pass += 1,
                (Some(true), Some(false)) => changes.pass_to_fail += 1,
                (None, Some(_)) => changes.gained += 1,
                (Some(_), None) => changes.lost += 1,
                (Some(true), Some(true)) | (Some(false), Some(false)) | (None, None) => {}
            }
            // Agreement is about judges, so cases decided by checks or errors are left out.
            if let (Some(then), Some(now)) = (then, now)
                && former.by_judge
                && case.is_by_judge()
            {
                pairs.push((then, now));
            }
        }
        changes.agreement = JudgeAgreement::of(&pairs);
        changes
    }

    /// Returns the changes in one line, for reports.
    pub fn sentence(&self) -> String {
        let flips = self.pass_to_fail + self.fail_to_pass;
        let mut parts = vec![
            format!("{} pass to fail", self.pass_to_fail),
            format!("{} fail to pass", self.fail_to_pass),
        ];
        let others = [(self.gained, "without one before"), (self.lost, "without one now")];
        parts.extend(
            others
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, words)| format!("{count} {words}")),
        );
        let agreement = match &self.agreement {
            Some(found) => format!("both judges agree {}", found.describe()),
            None => "no case was decided by both judges".to_owned(),
        };
        let of = cases(self.cases);
        format!("verdicts changed: {flips} of {of} ({}); {agreement}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{case, score, scored, unscored};
    use crate::judge::panel::PanelVerdict;
    use selftest_models::structured::UnscoredReason;

    fn verdict(overall: Option<f64>) -> Verdict {
        match overall {
            Some(overall) => scored([overall; 4], "").verdict,
            None => unscored(UnscoredReason::Malformed, "no JSON").verdict,
        }
    }

    /// A case whose judge said so when it was asked again and again.
    fn sampled(overalls: &[Option<f64>]) -> CaseResult {
        let mut case = case(0, "a", scored([0.9; 4], "Good."));
        let samples = overalls.iter().map(|overall| verdict(*overall)).collect();
        case.steps[0].judgement.as_mut().unwrap().samples = samples;
        case
    }

    /// A case on whose steps the judges `a`, `b` and `c` said so.
    fn by_panel(id: &str, steps: &[[Option<f64>; 3]]) -> CaseResult {
        let case = case(0, id, scored([0.9; 4], "Good."));
        let step = |said: &[Option<f64>; 3]| {
            let mut step = case.steps[0].clone();
            let judge = |(model, overall): (&str, &Option<f64>)| PanelVerdict {
                model: model.to_owned(),
                verdict: verdict(*overall),
                samples: Vec::new(),
            };
            let panel = ["a", "b", "c"].into_iter().zip(said).map(judge).collect();
            step.judgement.as_mut().unwrap().panel = panel;
            step
        };
        CaseResult { steps: steps.iter().map(step).collect(), ..case }
    }

    const GOOD: Option<f64> = Some(0.9);
    const BAD: Option<f64> = Some(0.3);

    #[test]
    fn samples_that_differ() {
        let of = |cases: &[CaseResult]| JudgeSamples::of(cases);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[sampled(&[GOOD]), sampled(&[])]), None, "once is no sample");
        let cases = [
            sampled(&[GOOD, GOOD]),
            sampled(&[Some(0.8), Some(0.8)]),
            sampled(&[GOOD, BAD, None]),
            sampled(&[BAD, BAD]),
        ];
        let found = of(&cases).unwrap();
        assert_eq!((found.answers, found.samples), (4, 9));
        assert_eq!((found.unscored, found.split), (1, 1));
        assert_eq!(
            found.sentence(),
            "9 verdicts on 4 answers, standard deviation on one answer 0.21, 1 answer passes by \
             some of them only, 1 verdict without a score"
        );
        let split = of(&[sampled(&[GOOD, BAD]), sampled(&[BAD, GOOD])]).unwrap();
        assert_eq!(
            split.sentence(),
            "4 verdicts on 2 answers, standard deviation on one answer 0.42, 2 answers pass by \
             some of them only"
        );
        let same = of(&[sampled(&[GOOD, GOOD])]).unwrap();
        assert_eq!(
            same.sentence(),
            "2 verdicts on 1 answer, standard deviation on one answer 0.00"
        );
        assert_eq!(of(&[sampled(&[GOOD, None])]).unwrap().variance, None);
    }

    #[test]
    fn a_judge_votes_by_all_steps() {
        let said = votes(&by_panel("x", &[[GOOD, BAD, None], [Some(0.8), GOOD, GOOD]]));
        let vote = |model: &str, pass, overall: Option<f64>| PanelVote {
            model: model.to_owned(),
            pass,
            overall: overall.map(score),
        };
        let (yes, no) = (Some(true), Some(false));
        let expected = [vote("a", yes, Some(0.8)), vote("b", no, BAD), vote("c", None, None)];
        assert_eq!(said, expected);
        assert_eq!(votes(&case(0, "x", scored([0.9; 4], "Good."))), []);
        let is_disputed = |passes: &[Option<bool>]| {
            let votes: Vec<PanelVote> = passes.iter().map(|pass| vote("a", *pass, None)).collect();
            super::is_disputed(&votes)
        };
        assert!(is_disputed(&[yes, no]) && is_disputed(&[no, None, yes]));
        for agreed in [&[yes, None][..], &[no, None], &[yes, yes], &[None], &[]] {
            assert!(!is_disputed(agreed), "{agreed:?}");
        }
    }

    #[test]
    fn judges_of_a_panel_agree_or_not() {
        let agreed = by_panel("agreed", &[[GOOD, GOOD, None]]);
        let disputed = by_panel("disputed", &[[GOOD, BAD, GOOD]]);
        let single = by_panel("single", &[[GOOD, None, None]]);
        let none = case(0, "none", scored([0.9; 4], "Good."));
        assert_eq!(PanelAgreement::of([&none]), None);
        let found = PanelAgreement::of([&none, &agreed, &disputed, &single]).unwrap();
        let judge = |model: &str, passed, failed, unscored| PanelJudge {
            model: model.to_owned(),
            passed,
            failed,
            unscored,
        };
        assert_eq!(found.judges, [judge("a", 3, 0, 0), judge("b", 1, 1, 1), judge("c", 1, 0, 2)]);
        assert_eq!((found.cases, found.unanimous), (2, 1));
        assert_eq!(found.disputed, ["disputed"]);
        let pairs: Vec<(&str, &str, u32, u32)> = found
            .pairs
            .iter()
            .map(|pair| {
                let agreement = pair.agreement.as_ref().unwrap();
                (&*pair.a, &*pair.b, agreement.cases, agreement.same)
            })
            .collect();
        assert_eq!(pairs, [("a", "b", 2, 1), ("a", "c", 1, 1), ("b", "c", 1, 0)]);
        let sentences = found.sentences();
        assert_eq!(sentences[0], "all judges say the same of 1 of 2 cases (50 %)");
        assert_eq!(sentences[1], "disputed: disputed");
        assert!(sentences[2].starts_with("a and b agree on 1 of 2 cases (50 %)"), "{sentences:?}");
        let silent = [
            "b: no vote on 1 case, which counts for nothing",
            "c: no vote on 2 cases, which counts for nothing",
        ];
        assert_eq!(sentences[5..], silent);
        let one = PanelAgreement::of([&agreed]).unwrap().sentences();
        assert_eq!(one[0], "all judges say the same of 1 of 1 case (100 %)");
        assert!(one[1].starts_with("a and b agree on 1 of 1 case"), "{one:?}");
        assert_eq!(one[2], "a and c have voted on no case both");
        let alone = PanelAgreement::of([&single]).unwrap().sentences();
        assert_eq!(alone[0], "no case has the votes of two judges");
    }

    fn pairs(cells: &[(bool, bool, usize)]) -> Vec<(bool, bool)> {
        cells.iter().flat_map(|&(a, b, count)| vec![(a, b); count]).collect()
    }

    #[test]
    fn agreement_in_words() {
        // Artstein and Poesio (2008): kappa 0.348.
        let (yes, no) = (true, false);
        let found = JudgeAgreement::of(&pairs(&[
            (no, no, 20),
            (no, yes, 20),
            (yes, no, 10),
            (yes, yes, 50),
        ]));
        let found = found.unwrap();
        assert_eq!((found.cases, found.same), (100, 70));
        assert_eq!(found.describe(), "on 70 of 100 cases (70 %), kappa 0.35 [0.16, 0.53]");
        let wilson = found.interval.unwrap();
        assert!(wilson.low > 0.6 && wilson.high < 0.79, "{wilson:?}");
    }

    #[test]
    fn what_cannot_be_estimated_is_absent() {
        assert_eq!(JudgeAgreement::of(&[]), None);
        let same = JudgeAgreement::of(&[(true, true)]).unwrap();
        assert_eq!((same.kappa, same.kappa_interval), (None, None));
        assert_eq!(
            same.describe(),
            "on 1 of 1 case (100 %), no kappa, since all verdicts are the same"
        );
        // Perfect on few cases: that its error is nil is no knowledge.
        let perfect = JudgeAgreement::of(&[(true, true), (false, false)]).unwrap();
        assert_eq!(perfect.kappa, Some(1.0));
        assert_eq!(perfect.describe(), "on 2 of 2 cases (100 %), kappa 1.00, without an interval");
    }
}
