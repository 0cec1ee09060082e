//! Score of a reflection: 1.0 minus the deductions of its issues
//! (docs/spec/reflections.md#scoring).

use serde_json::{Map, Value};

use super::alignment::GoalAlignment;
use super::document::Reflection;
use super::issue::{IssueCode, ReflectionIssue};
use super::rules::AgentRules;
use selftest_stats::score::{Score, Threshold};

/// Grade of a reflection.
#[derive(Debug, Clone, PartialEq)]
pub struct ReflectionGrade {
    /// 1.0 minus the deductions, at least 0.0. Summed in hundredths, so that it is exact.
    pub score: Score,
    /// Issues, in the order of [`IssueCode::ALL`].
    pub issues: Vec<ReflectionIssue>,
}

impl ReflectionGrade {
    /// Returns true if the score is below the threshold.
    pub fn is_weak(&self, threshold: Threshold) -> bool {
        !self.score.reaches(threshold)
    }
}

/// Grades a document by the rules for its agent.
pub fn grade_reflection(document: &Map<String, Value>, rules: &AgentRules) -> ReflectionGrade {
    let reflection = Reflection::from_document(document);
    let mut issues = Vec::new();
    if let Some(fault) = rules.schema_fault(&Value::Object(document.clone())) {
        let text = format!("not of the expected schema: {fault}");
        issues.push(ReflectionIssue::new(IssueCode::SchemaMismatch, text));
    }
    issues.extend(confidence_issue(&reflection, rules));
    if !reflection.tags.iter().any(|tag| rules.is_loop_tag(tag)) {
        let text = match reflection.tags.len() {
            0 => "there are no tags, and so none that refers to a loop".to_owned(),
            count => format!("none of the tags ({count}) refers to a loop"),
        };
        issues.push(ReflectionIssue::new(IssueCode::LoopTagMissing, text));
    }
    let summary = reflection.summary.as_deref().unwrap_or_default();
    issues.extend(alignment_issue(reflection.goal.as_deref(), summary, rules));
    issues.extend(length_issue(summary, rules));
    let lost = issues.iter().map(|issue| issue.code.hundredths()).fold(0, u8::saturating_add);
    let hundredths = 100_u8.saturating_sub(lost);
    let score = Score::new(f64::from(hundredths) / 100.0).expect("0 to 100 hundredths");
    ReflectionGrade { score, issues }
}

fn confidence_issue(reflection: &Reflection, rules: &AgentRules) -> Option<ReflectionIssue> {
    let least = rules.criteria.min_confidence.get();
    match reflection.confidence {
        None => Some(ReflectionIssue::new(
            IssueCode::ConfidenceMissing,
            "there is no confidence that is a number from 0 to 1",
        )),
        Some(confidence) if confidence < least => Some(ReflectionIssue::new(
            IssueCode::LowConfidence,
            format!("the confidence is {confidence}, below {least}"),
        )),
        Some(_) => None,
    }
}

fn alignment_issue(
    goal: Option<&str>,
    summary: &str,
    rules: &AgentRules,
) -> Option<ReflectionIssue> {
    let least = rules.criteria.min_goal_overlap.get();
    let Some(found) = goal.and_then(|goal| GoalAlignment::measure(goal, summary)) else {
        let text = match goal {
            None => "there is no goal to compare the summary with",
            Some(_) => "the goal has no words to compare the summary with",
        };
        return Some(ReflectionIssue::new(IssueCode::GoalMissing, text));
    };
    let GoalAlignment { used, of } = found;
    (found.share() < least).then(|| {
        let least = least * 100.0;
        let text = format!(
            "the summary uses {used} of the {of} words of the goal, expected at least {least:.0} %"
        );
        ReflectionIssue::new(IssueCode::GoalMisaligned, text)
    })
}

/// Checks the length of the trimmed summary, in characters rather than bytes.
fn length_issue(summary: &str, rules: &AgentRules) -> Option<ReflectionIssue> {
    let count = summary.chars().count() as u64;
    let (least, most) = (rules.criteria.summary_min_chars, rules.criteria.summary_max_chars);
    let (code, limit) = if count < u64::from(least) {
        (IssueCode::SummaryTooBrief, format!("fewer than {least}"))
    } else if count > u64::from(most) {
        (IssueCode::SummaryTooLong, format!("more than {most}"))
    } else {
        return None;
    };
    Some(ReflectionIssue::new(code, format!("the summary has {count} characters, {limit}")))
}
