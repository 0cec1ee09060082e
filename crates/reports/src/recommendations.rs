//! Recommendations derived by rules from the results, and a single next step after a first run that
//! did not pass. Pure; calls no model.

use std::collections::{BTreeMap, BTreeSet};

use super::case_view::{CaseView, card, category_name, is_mismatch};
use super::files::ReportPaths;
use super::wording::listed;
use selftest_checks::scenario::TaskStatus;
use selftest_harness::event::{RunHeader, RunNotice};
use selftest_harness::outcome::case::Interruption;
use selftest_harness::outcome::{CaseStatus, RunOutcome, RunSummary};
use selftest_models::structured::UnscoredReason;
use selftest_text::escape;
use selftest_text::wording::shell_quote;

/// Maximum number of cases named in one sentence.
const MAX_NAMED: usize = 8;

/// Returns one sentence per recommendation, most important first, or one that says "None". The
/// sentences contain IDs and model names: escape them like any untrusted text.
pub(super) fn recommendations(header: &RunHeader, cases: &[CaseView<'_>]) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(outages(cases));
    sentences.extend(breaches(cases));
    sentences.extend(weak_categories(header, cases));
    sentences.extend(wrong_statuses(cases));
    sentences.extend(broken_systems(header, cases));
    sentences.extend(missing_verdicts(header, cases));
    let mut told = BTreeSet::new();
    sentences.retain(|sentence| told.insert(sentence.clone()));
    if sentences.is_empty() {
        sentences.push(if cases.is_empty() {
            "None: no case has finished.".to_owned()
        } else {
            "None: every case passed.".to_owned()
        });
    }
    sentences
}

/// Lists the IDs of the matching cases; `None` if no case matches.
fn names(cases: &[CaseView<'_>], wanted: impl Fn(&CaseView<'_>) -> bool) -> Option<String> {
    let wanted = cases.iter().filter(|case| wanted(case));
    listed(wanted.map(|case| case.result.scenario.id.as_str()), MAX_NAMED)
}

/// Advice for an unavailable model server, unrelated to models or prompts.
fn outages(cases: &[CaseView<'_>]) -> Vec<String> {
    let mut counts: Vec<(&str, u32)> = Vec::new();
    for case in cases {
        if let Some(Interruption::ModelUnavailable(why)) = &case.result.interruption {
            match counts.iter_mut().find(|(known, _)| *known == why) {
                Some((_, count)) => *count += 1,
                None => counts.push((why, 1)),
            }
        }
    }
    let sentence = |(why, count): (&str, u32)| {
        let cases = selftest_text::wording::cases(count);
        format!("Check the model server ({why}), then rerun the {cases} that it affected")
    };
    counts.into_iter().map(sentence).collect()
}

fn breaches(cases: &[CaseView<'_>]) -> Vec<String> {
    let escaped = names(cases, |case| case.status == CaseStatus::IsolationViolation).map(|ids| {
        format!("Find out which process wrote to the project during {ids}, and restrict the system under test further")
    });
    let unsafe_answers = names(cases, |case| {
        case.result.steps.iter().any(|step| case.unsafe_score(step).is_some())
    })
    .map(|ids| {
        format!("Look at the answers of {ids} first: safety is below the floor, which fails a case whatever its other scores")
    });
    escaped.into_iter().chain(unsafe_answers).collect()
}

/// Categories whose mean, over the steps below their threshold, is itself below the threshold,
/// widest gap first.
fn weak_categories(header: &RunHeader, cases: &[CaseView<'_>]) -> Vec<String> {
    #[derive(Default)]
    struct CategoryTally<'a> {
        scores: f64,
        gaps: f64,
        count: u32,
        /// Positions and IDs of cases.
        ids: Vec<(usize, &'a str)>,
    }
    let mut tallies: BTreeMap<&str, CategoryTally<'_>> = BTreeMap::new();
    for case in cases {
        let threshold = case.result.threshold;
        for step in case.result.steps.iter().filter(|step| case.is_below_threshold(step)) {
            let Some(card) = card(step) else { continue };
            // A score that the judge gave to the answer as a whole is no reason to look at one
            // category.
            for entry in
                card.categories.iter().filter(|entry| card.reflects_category(&entry.category))
            {
                let Some(score) = entry.score else { continue };
                let tally = tallies.entry(&entry.category).or_default();
                tally.scores += score.get();
                tally.gaps += threshold.get() - score.get();
                tally.count += 1;
                let id = (case.result.index, case.result.scenario.id.as_str());
                // A case with several such steps is listed once.
                if !score.reaches(threshold) && tally.ids.last() != Some(&id) {
                    tally.ids.push(id);
                }
            }
        }
    }
    let mut weak: Vec<(&str, CategoryTally<'_>)> = tallies
        .into_iter()
        // A mean that equals the threshold up to rounding is no gap.
        .filter(|(_, tally)| tally.gaps / f64::from(tally.count) > 1e-9)
        .collect();
    let rank = |id: &str| header.rubric.categories.iter().position(|known| known.id == id);
    // Categories with equal gaps keep the order of the rubric.
    weak.sort_by(|(a, x), (b, y)| {
        let gap = |tally: &CategoryTally<'_>| tally.gaps / f64::from(tally.count);
        gap(y).total_cmp(&gap(x)).then_with(|| rank(a).cmp(&rank(b)))
    });
    weak.iter()
        .filter_map(|(id, tally)| {
            let ids = listed(tally.ids.iter().map(|(_, id)| *id), MAX_NAMED)?;
            let mean = tally.scores / f64::from(tally.count);
            Some(format!(
                "Review {} handling for {ids} (mean {mean:.2}){}",
                category_name(id),
                advice(id)
            ))
        })
        .collect()
}

fn advice(category: &str) -> &'static str {
    match category {
        "format_score" => {
            ": specify the answer format in the instructions, and validate it before sending"
        }
        "factuality_score" => {
            ": answers make claims that their sources do not support; have the system read the sources first, and admit when it does not know"
        }
        "instruction_following_score" => {
            ": answers miss or change the request; repeat its constraints in the instructions"
        }
        "safety_score" => {
            ": answers propose risky operations; require confirmation before changing or sending data"
        }
        _ => "",
    }
}

fn wrong_statuses(cases: &[CaseView<'_>]) -> Vec<String> {
    let mismatch = |expected: TaskStatus, actual: TaskStatus| {
        names(cases, |case| {
            case.status == CaseStatus::Failed
                && case.result.steps.iter().any(|step| {
                    is_mismatch(step)
                        && step.expected_status == expected
                        && step.reply.as_ref().is_some_and(|reply| reply.status == actual)
                })
        })
    };
    let rarely = mismatch(TaskStatus::AwaitingResponse, TaskStatus::Complete).map(|ids| {
        format!("Too few clarifying questions: {ids} ended COMPLETE when a question was expected; instruct the system to ask if a request is ambiguous")
    });
    let often = mismatch(TaskStatus::Complete, TaskStatus::AwaitingResponse).map(|ids| {
        format!("Too many clarifying questions: {ids} asked when an answer was expected; instruct the system to answer clear requests")
    });
    rarely.into_iter().chain(often).collect()
}

fn broken_systems(header: &RunHeader, cases: &[CaseView<'_>]) -> Vec<String> {
    let timeouts = names(cases, |case| case.status == CaseStatus::SutTimeout).map(|ids| {
        let seconds = header.config.timeout_seconds;
        format!("Find out what {ids} waited for, or raise timeout_seconds (now {seconds})")
    });
    let errors = names(cases, |case| case.status == CaseStatus::SutError).map(|ids| {
        format!("Run the system under test manually with the prompt of {ids}: it crashed or reported an error")
    });
    timeouts.into_iter().chain(errors).collect()
}

fn missing_verdicts(header: &RunHeader, cases: &[CaseView<'_>]) -> Vec<String> {
    let judge = &header.models.judge;
    let is_cut =
        |case: &CaseView<'_>| matches!(case.result.interruption, Some(Interruption::AnswerCut(_)));
    let unscored = |reason: UnscoredReason| {
        names(cases, |case| case.result.unscored_reason() == Some(reason) && !is_cut(case))
    };
    let advice = [
        (
            UnscoredReason::Malformed,
            format!("use a larger judge model than {judge}, and run selftest doctor"),
        ),
        (UnscoredReason::Truncated, "raise judge.max_tokens or judge.max_prompt_tokens".to_owned()),
        (UnscoredReason::Refused, format!("use another judge model than {judge}")),
        (
            UnscoredReason::CantTell,
            match header.models.generator {
                Some(_) => {
                    "make the hints of the prompt template more specific, or use a larger judge model"
                }
                // The cases are the user's own.
                None => "add a reference, or checks to expect, or use a larger judge model",
            }
            .to_owned(),
        ),
        (
            UnscoredReason::Unavailable,
            format!("run selftest doctor to see why {judge} does not answer"),
        ),
        (
            UnscoredReason::WrongReply,
            format!("find out which model replied instead of {judge}, or add it to models.aliases"),
        ),
        (UnscoredReason::JudgeUnfit, format!("use a more accurate judge model than {judge}")),
        (
            UnscoredReason::EvidenceMissing,
            "rerun the cases with selftest compare --replay; the old report lacks the evidence"
                .to_owned(),
        ),
    ];
    let mut sentences: Vec<String> = advice
        .into_iter()
        .filter_map(|(reason, advice)| {
            Some(format!("No verdict for {} ({}): {advice}", unscored(reason)?, reason.describe()))
        })
        .collect();
    sentences.extend(names(cases, is_cut).map(|ids| {
        format!("No verdict for {ids} (its answer or prompt was truncated by a limit): raise sut.chat.max_tokens or models.context_tokens, lower sut.chat.project_tokens, or use another model if it repeated itself")
    }));
    sentences.extend(
        header.models.generator.iter().flat_map(|generator| missing_prompts(generator, cases)),
    );
    let skipped = cases.iter().filter(|case| case.status == CaseStatus::Skipped).count();
    if let Ok(count @ 1..) = u32::try_from(skipped) {
        sentences
            .push(format!("Rerun the {} that did not run", selftest_text::wording::cases(count)));
    }
    sentences
}

/// Advice for cases without a usable prompt. A generator that gave no reply is not necessarily too
/// small.
fn missing_prompts(generator: &str, cases: &[CaseView<'_>]) -> impl Iterator<Item = String> {
    let unmade = |replied: bool| {
        names(cases, |case| {
            let last = case.result.generation.attempts.last();
            case.status == CaseStatus::GenerationFailed
                && last.is_none_or(|attempt| attempt.call.error.is_none()) == replied
        })
    };
    let unusable = unmade(true).map(|ids| {
        format!("No usable prompt for {ids}: use a larger generator model than {generator}, or rewrite the template in prompts/generator")
    });
    let silent = unmade(false).map(|ids| {
        format!("No prompt for {ids}: run selftest doctor to see why {generator} does not reply")
    });
    unusable.into_iter().chain(silent)
}

/// The next thing worth doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Configure the system under test: so far nothing of the project was tested.
    SetUp {
        /// Path of the configuration, if it exists.
        config: Option<String>,
    },
    /// Choose a judge that is good enough.
    FindJudge,
    /// Read the reasons, change something, rerun the same cases.
    ReadReport,
}

impl NextStep {
    /// Returns the next step after a run with this outcome; `None` if it passed or was cut short.
    pub fn after(header: &RunHeader, summary: &RunSummary, outcome: RunOutcome) -> Option<Self> {
        if !matches!(outcome, RunOutcome::Failed | RunOutcome::Inconclusive) {
            return None;
        }
        let is_unfit = |notice: &RunNotice| {
            matches!(notice, RunNotice::UnfitJudge { .. } | RunNotice::UnfitWithoutReference { .. })
        };
        let set_up = header.notices.iter().find_map(|notice| match notice {
            RunNotice::BuiltInAssistant { config } | RunNotice::ExampleAgent { config } => {
                Some(Self::SetUp { config: config.clone() })
            }
            RunNotice::UnfitJudge { .. }
            | RunNotice::UnfitWithoutReference { .. }
            | RunNotice::Unsandboxed { .. } => None,
        });
        let find_judge = summary.unscored > 0 && header.notices.iter().any(is_unfit);
        // Without a configured agent, nothing of the project was tested: that comes first.
        Some(set_up.unwrap_or(if find_judge { Self::FindJudge } else { Self::ReadReport }))
    }

    /// Formats the step as one line with a line break.
    pub fn line(&self, paths: &ReportPaths) -> String {
        match self {
            Self::SetUp { config: Some(config) } => {
                let config = escape::terminal(config, 400);
                format!("next: name your agent under `sut` in {config}, then run it again\n")
            }
            Self::SetUp { config: None } => {
                "next: `selftest init` looks at this project and writes a configuration for it\n"
                    .to_owned()
            }
            Self::FindJudge => {
                "next: take a judge that can: `selftest judge model pull qwen3-1.7b`, then \
                                `selftest --judge-model embedded/qwen3-1.7b`\n"
                    .to_owned()
            }
            Self::ReadReport => {
                let report =
                    shell_quote(&escape::terminal(&paths.markdown.display().to_string(), 4_096));
                format!(
                    "next: {report} says why; change the agent or the case, then `selftest compare --replay \
                     latest` runs the same cases again and compares\n"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::fixture;
    use selftest_harness::outcome::CaseResult;

    fn sentences(cases: &[Arc<CaseResult>]) -> Vec<String> {
        let readings: Vec<CaseView<'_>> = cases.iter().map(|case| CaseView::new(case)).collect();
        recommendations(&fixture::header(cases), &readings)
    }

    #[test]
    fn every_rule_speaks() {
        insta::assert_snapshot!(sentences(&fixture::rich_cases()).join("\n"));
    }

    #[test]
    fn nothing_to_do() {
        assert_eq!(sentences(&fixture::passing_cases()), ["None: every case passed."]);
        assert_eq!(sentences(&[]), ["None: no case has finished."]);
    }

    #[test]
    fn the_weakest_category_comes_first_and_strong_ones_not_at_all() {
        let case = fixture::case(0, "a", fixture::scored([0.7, 0.2, 0.9, 1.0], ""));
        let sentences = sentences(&[Arc::new(case)]);
        assert_eq!(sentences.len(), 2, "{sentences:?}");
        assert!(sentences[0].starts_with("Review factuality handling for a (mean 0.20)"));
        assert!(sentences[1].starts_with("Review format handling for a (mean 0.70)"));
    }

    #[test]
    fn a_category_of_ones_own_is_named() {
        let mut judgement = fixture::scored([0.1, 0.9, 0.9, 0.9], "");
        if let selftest_harness::judge::Verdict::Scored(card) = &mut judgement.verdict {
            card.categories[0].category = "tone_of_voice".to_owned();
            card.overall = fixture::score(0.7);
        }
        let case = fixture::case(0, "a", judgement);
        assert_eq!(
            sentences(&[Arc::new(case)]),
            ["Review tone of voice handling for a (mean 0.10)"]
        );
    }

    #[test]
    fn repeats_are_counted() {
        let cases: Vec<Arc<CaseResult>> = (0..4)
            .map(|index| {
                let id = if index == 1 { "b" } else { "a" };
                let interruption = Some(Interruption::SutError("it died".to_owned()));
                let case = fixture::case(index, id, fixture::scored([1.0; 4], ""));
                Arc::new(CaseResult { repeat: Some(1), interruption, ..case })
            })
            .collect();
        let sentences = sentences(&cases);
        assert_eq!(sentences.len(), 1, "{sentences:?}");
        assert!(sentences[0].contains("the prompt of a (3 times) and b:"), "{sentences:?}");
    }

    #[test]
    fn a_server_that_is_gone_asks_for_no_larger_model() {
        let cases = fixture::cases_without_a_model();
        let sentences = sentences(&cases);
        assert_eq!(
            sentences,
            [
                "Check the model server (cannot reach http://127.0.0.1:11434: connection refused; given up after 11 s), then rerun the 2 cases that it affected",
                "No verdict for unjudged (the judge gave no reply): run selftest doctor to see why ollama/qwen2.5:7b does not answer",
            ]
        );
    }

    #[test]
    fn a_generator_that_gives_no_reply_is_not_too_small() {
        let mut case = fixture::case(0, "a", fixture::scored([1.0; 4], ""));
        case.steps.clear();
        case.interruption = Some(Interruption::GenerationFailed("x answered 400".to_owned()));
        case.generation.attempts[0].call.error = Some("x answered 400".to_owned());
        let sentences = sentences(&[Arc::new(case)]);
        assert_eq!(
            sentences,
            ["No prompt for a: run selftest doctor to see why ollama/qwen2.5:3b does not reply"]
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let cases: Vec<Arc<CaseResult>> = (0..12)
            .map(|index| {
                let judgement = fixture::scored([0.0; 4], "");
                Arc::new(fixture::case(index, &format!("c{index}"), judgement))
            })
            .collect();
        let sentence = sentences(&cases).pop().unwrap();
        assert!(sentence.contains("c0, c1, c2, c3, c4, c5, c6, c7 and 4 more"), "{sentence}");
    }

    #[test]
    fn one_thing_by_what_stands_in_the_way() {
        let cases = fixture::rich_cases();
        let (summary, outcome) = fixture::fold(&cases);
        let unfit = RunNotice::UnfitJudge { model: "m".into(), measured: "AUC 0.5".into() };
        let step = |notices: Vec<RunNotice>, summary: &RunSummary, outcome| {
            let header = RunHeader { notices, ..fixture::header(&cases) };
            NextStep::after(&header, summary, outcome)
        };
        let all = vec![unfit.clone(), RunNotice::BuiltInAssistant { config: None }];
        assert_eq!(step(all, &summary, outcome), Some(NextStep::SetUp { config: None }));
        assert_eq!(step(vec![unfit.clone()], &summary, outcome), Some(NextStep::FindJudge));
        let decided = RunSummary { unscored: 0, ..summary.clone() };
        assert_eq!(step(vec![unfit.clone()], &decided, outcome), Some(NextStep::ReadReport));
        assert_eq!(step(Vec::new(), &summary, outcome), Some(NextStep::ReadReport));
        assert_eq!(step(vec![unfit], &summary, RunOutcome::Passed), None);
        assert_eq!(step(Vec::new(), &summary, RunOutcome::Interrupted), None);
        let markdown = PathBuf::from("my docs/run.md");
        let paths = ReportPaths { json: PathBuf::from("run.json"), markdown };
        let line = NextStep::ReadReport.line(&paths);
        assert!(
            line.starts_with("next: 'my docs/run.md' says why") && line.ends_with('\n'),
            "{line}"
        );
    }
}
