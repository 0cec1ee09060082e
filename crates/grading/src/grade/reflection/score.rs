//! Score of a reflection: 1.0 minus the deductions of its issues
//! (docs/spec/reflections.md#scoring).
//!
//! The specification requires the summary to align with the goal, but does not define a measure.
//! Here it is the share of the goal's words that the summary uses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::document::{IssueCode, Reflection, ReflectionIssue};
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
    // In whole hundredths, because 1.0 - 0.1 - 0.2 is not 0.7 in floating point.
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

/// The stopwords of docs/spec/skills-and-signals.md#repetition, and other words that any two texts
/// share.
const STOPWORDS: [&str; 55] = [
    "the", "a", "an", "is", "was", "are", "were", "do", "does", "did", "can", "could", "would",
    "should", "please", "just", "me", "my", "i", //
    "about", "all", "and", "as", "at", "be", "been", "but", "by", "for", "from", "had", "has",
    "have", "if", "in", "into", "it", "its", "no", "not", "of", "on", "or", "our", "so", "than",
    "that", "then", "this", "to", "we", "will", "with", "you", "your",
];

/// Number of the goal's words used by a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoalAlignment {
    pub(super) used: usize,
    /// Number of distinct words in the goal; at least 1.
    pub(super) of: usize,
}

impl GoalAlignment {
    /// Compares goal and summary. Returns `None` if the goal has no comparable words.
    pub(super) fn measure(goal: &str, summary: &str) -> Option<Self> {
        let (goal, summary) = (stems(goal), stems(summary));
        let used = goal.intersection(&summary).count();
        (!goal.is_empty()).then_some(Self { used, of: goal.len() })
    }

    /// Returns `used / of`, 0.0 to 1.0.
    #[expect(clippy::cast_precision_loss, reason = "word counts are far below 2^52")]
    pub(super) fn share(self) -> f64 {
        self.used as f64 / self.of as f64
    }
}

fn stems(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    words.filter(|word| !word.is_empty() && !STOPWORDS.contains(&word.as_str())).map(stem).collect()
}

/// Strips the endings of English plurals and tenses, so that "retries" matches "retry" and "cached"
/// matches "caching". The result need not be a word.
fn stem(mut word: String) -> String {
    /// Minimum number of characters left after removing an ending.
    const MIN_CHARS: usize = 3;
    let is_plural = word.ends_with('s') && !word.ends_with("ss");
    // The plural first, since it stands behind the other endings.
    let endings = [("s", is_plural), ("ing", true), ("ed", true), ("e", true)];
    for (ending, may_go) in endings {
        // The endings are ASCII: their bytes are their characters.
        if may_go && word.ends_with(ending) && word.chars().count() >= MIN_CHARS + ending.len() {
            word.truncate(word.len() - ending.len());
        }
    }
    // By now `retries` is `retri`.
    if word.ends_with('y') {
        word.pop();
        word.push('i');
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(goal: &str, summary: &str) -> Option<(usize, usize)> {
        GoalAlignment::measure(goal, summary).map(|GoalAlignment { used, of }| (used, of))
    }

    /// docs/spec/reflections.md#criteria, goal alignment: how it is measured here.
    #[test]
    fn words_count_in_any_form_and_order() {
        let goal = "Add retries to the HTTP client for flaky servers";
        let summary = "The client of the HTTP layer retried; flaky server answers were added.";
        assert_eq!(counts(goal, summary), Some((6, 6)));
        assert_eq!(counts("cache the page", "Caching of pages"), Some((2, 2)));
        assert_eq!(counts("Cache, cache, CACHE!", "cached"), Some((1, 1)));
        assert_eq!(counts("access", "process"), Some((0, 1)));
    }

    #[test]
    fn words_that_any_text_has_do_not_count() {
        assert_eq!(counts("to be or not to be", "to be with you"), None);
        assert_eq!(counts("Please do it!", "done"), None);
        assert_eq!(counts("", "anything"), None);
        assert_eq!(counts("the login page", ""), Some((0, 2)));
        assert_eq!(counts("fix the login page", "it is the one for all of us"), Some((0, 3)));
    }

    #[test]
    fn the_length_of_the_summary_does_not_count() {
        let long = "the login works ".repeat(100) + "and many other things ".repeat(500).as_str();
        assert_eq!(counts("fix the login", &long), Some((1, 2)));
    }

    #[test]
    fn other_scripts_are_compared_word_by_word() {
        assert_eq!(counts("исправить вход", "вход работает"), Some((1, 2)));
        assert_eq!(stem("s".to_owned()), "s");
        assert_eq!(stem("éés".to_owned()), "éés");
    }
}
