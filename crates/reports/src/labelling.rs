//! A run's answers as a human labeller sees them, and the judge's verdicts beside the labels.
//!
//! Labelling is blind: the presentation contains no verdict, score or threshold. Terminal, script
//! and page all show what this module returns.

use std::collections::{BTreeSet, HashMap};

use super::document::{CaseDocument, ReportDocument};
use selftest_harness::calibration::labels::{AnswerId, LabelFile, labelling_order};
use selftest_harness::calibration::{CalibratedJudge, Label, LabelledAnswer, OwnScores, fit};
use selftest_text::escape::{block, terminal};
use selftest_text::one_line;

/// Maximum length of a displayed text, in bytes.
const MAX_SHOWN: usize = 8_000;
/// Maximum length of a path in a heading, in bytes.
const MAX_PATH: usize = 200;

/// Returns the answers of a run in labelling order.
pub fn answers(report: &ReportDocument) -> Vec<AnswerId> {
    let mut answers: Vec<AnswerId> = report.cases.iter().filter_map(answer_id).collect();
    labelling_order(report.run_id.as_str(), &mut answers);
    answers
}

fn answer_id(case: &CaseDocument) -> Option<AnswerId> {
    AnswerId::of(case.name(), &case.scenario, &case.generated()?, &case.steps)
}

/// A section of a case in the presentation for labelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabellingSection {
    /// Heading of the section.
    pub heading: String,
    /// Its text, possibly untrusted.
    pub text: String,
}

/// Returns the sections of a case for labelling: the prompt, the answer, the criteria, and the
/// judge's excerpts of the project.
pub fn sections(report: &ReportDocument, answer: &AnswerId) -> Option<Vec<LabellingSection>> {
    let case = report.cases.iter().find(|case| case.name() == answer.case)?;
    let generated = case.generated()?;
    let mut parts = Vec::new();
    let mut add = |heading: &str, text: &str| {
        parts.push(LabellingSection { heading: heading.to_owned(), text: text.to_owned() });
    };
    for step in &case.steps {
        let Some(reply) = &step.reply else { continue };
        add("Asked", &step.input);
        add("Answered", &reply.output);
        let (expected, found) = (step.expected_status, reply.status);
        add("Status", &format!("{found}, expected {expected}"));
    }
    let grounds = &generated.grounds;
    if !generated.hints.trim().is_empty() {
        add("Look for", &generated.hints);
    }
    if !grounds.expectations.is_empty() {
        add("Expected", &grounds.expectations.join("\n"));
    }
    for excerpt in &grounds.excerpts {
        add(&format!("From {}", one_line(&excerpt.path, MAX_PATH)), &excerpt.text);
    }
    Some(parts)
}

/// Formats the sections for a terminal.
pub fn render_sections(report: &ReportDocument, answer: &AnswerId) -> Option<String> {
    let mut text = String::new();
    for part in sections(report, answer)? {
        text += &format!("{}:\n", terminal(&part.heading, 2 * MAX_PATH));
        for line in block(&part.text, MAX_SHOWN).lines() {
            text += &format!("  {line}\n");
        }
    }
    Some(text)
}

/// Returns the identity of a run's judge.
pub fn calibrated_judge(report: &ReportDocument) -> CalibratedJudge {
    let models = &report.models;
    CalibratedJudge::new(
        &models.judge,
        models.judge_weights.as_deref(),
        models.judge_method,
        &report.prompt_digests,
        &report.rubric.digest,
    )
}

/// Returns the labelled answers that the judge scored, the names of the numbers it gave, and the
/// number of labels on answers without a score.
pub fn labelled_answers(
    report: &ReportDocument,
    labels: &LabelFile,
) -> (Vec<LabelledAnswer>, Vec<String>, usize) {
    let cases: HashMap<String, &CaseDocument> =
        report.cases.iter().map(|case| (case.name(), case)).collect();
    let (mut found, mut names, mut unscored) = (Vec::new(), Vec::new(), 0);
    for given in &labels.labels {
        let scored = cases.get(&given.case).and_then(|case| {
            let card = fit::deciding_card(&case.steps)?;
            Some((case, card, fit::feature_values(card)?, case.pass?))
        });
        let Some((case, card, features, passed)) = scored else {
            unscored += 1;
            continue;
        };
        names = fit::feature_names(card);
        found.push(LabelledAnswer {
            run_id: report.run_id.to_string(),
            case: case.name(),
            is_good: given.label == Label::Good,
            passed,
            features,
        });
    }
    (found, names, unscored)
}

/// Adds the judge's scores of a run's labelled answers, also of those that it left undecided. An answer
/// that is `known` from another run counts once.
pub fn add_own_scores(
    report: &ReportDocument,
    labels: &LabelFile,
    known: &mut BTreeSet<(String, String)>,
    scores: &mut OwnScores,
) {
    let categories = &report.rubric.categories;
    let weight = |id: &str| categories.iter().find(|one| one.id == id).map(|one| one.weight);
    let of_case: HashMap<String, &CaseDocument> =
        report.cases.iter().map(|case| (case.name(), case)).collect();
    for given in &labels.labels {
        let Some(case) = of_case.get(&given.case) else { continue };
        let said = case.steps.iter().filter_map(|step| step.reply.as_ref());
        let said: Vec<&str> = said.map(|reply| reply.output.as_str()).collect();
        let asked = case.prompt.clone().unwrap_or_default();
        if known.insert((asked, said.join("\n"))) {
            let has_reference = case.grounds.reference.is_some();
            scores.add(&case.steps, weight, has_reference, given.label == Label::Good);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use selftest_harness::calibration::LabelError;

    fn report() -> ReportDocument {
        serde_json::from_str(&fixture::rich_run().json().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn who_labels_sees_no_verdict() {
        let report = report();
        let answers = answers(&report);
        assert!(answers.len() > 5, "{answers:?}");
        for answer in &answers {
            let text = render_sections(&report, answer).unwrap();
            let case = report.cases.iter().find(|case| case.name() == answer.case).unwrap();
            assert!(text.contains("Asked:") && text.contains("Answered:"), "{text}");
            for word in ["threshold", "overall"] {
                assert!(!text.contains(word), "{word} in {text}");
            }
            assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
            if let Some(overall) = case.scores.overall {
                assert!(!text.contains(&format!("{overall}")), "{text}");
            }
        }
    }

    #[test]
    fn labels_meet_what_the_judge_said() {
        let report = report();
        let answers = answers(&report);
        let mut labels = LabelFile::new(report.run_id.as_str());
        for answer in &answers {
            labels.add(answer, Label::Good).unwrap();
        }
        let labels = labels.bind(&answers).unwrap();
        let (found, names, unscored) = labelled_answers(&report, &labels);
        assert_eq!(found.len() + unscored, answers.len());
        assert!(unscored > 0 && found.iter().all(|answer| answer.features.len() == names.len()));
        // Another answer to the same request makes the label void.
        let mut other = report.clone();
        let name = &found[0].case;
        let case = other.cases.iter_mut().find(|case| case.name() == *name).unwrap();
        case.steps[0].reply.as_mut().unwrap().output.push('!');
        let fault = labels.bind(&super::answers(&other)).unwrap_err();
        assert_eq!(fault, LabelError::OtherAnswer(name.clone()));
    }
}
