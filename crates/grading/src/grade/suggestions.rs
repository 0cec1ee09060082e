//! Suggestions for improvement (docs/spec/session-grades.md#suggestions): six rules over a week's
//! records. Each suggestion includes the numbers and sessions behind it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern_tally::PatternTally;
use super::patterns::{self, session_score};
use super::share::{Proportion, TruncatedList, total};
use super::{ErrorCause, ErrorFindings, GradeRecord, GradeSummary};

/// Maximum number of suggestions from a rule that applies per task type, tool or class.
const MAX_PER_RULE: usize = 5;

/// Thresholds of the rules. The specification gives the first three; those for "low", "high" and
/// "common" are ours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SuggestionRules {
    /// Minimum number of sessions before any rule applies. For recovery, only sessions with errors
    /// count.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub min_sessions: u64,
    /// Completion rate below which a suggestion is made.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub completion_rate: f64,
    /// Mean tool efficiency below which a suggestion is made.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub tool_efficiency: f64,
    /// Error recovery rate below which a suggestion is made.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_recovery_rate: f64,
    /// A task type is low if its mean score is below this, in at least `min_sessions`.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub task_type_score: f64,
    /// A tool has high errors if more than this share of its calls failed …
    #[schemars(range(min = 0.0, max = 1.0))]
    pub tool_error_rate: f64,
    /// … and at least this number of calls.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tool_min_errors: u64,
    /// An error class is common if it is at least this share of all errors …
    #[schemars(range(min = 0.0, max = 1.0))]
    pub error_share: f64,
    /// … occurred at least this number of times …
    #[schemars(range(min = 1, max = 1_000_000))]
    pub error_min_count: u64,
    /// … and in at least this number of sessions.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub error_min_sessions: u64,
}

impl Default for SuggestionRules {
    fn default() -> Self {
        Self {
            min_sessions: 3,
            completion_rate: 0.7,
            tool_efficiency: 3.0,
            error_recovery_rate: 0.8,
            task_type_score: 3.0,
            tool_error_rate: 0.2,
            tool_min_errors: 5,
            error_share: 0.2,
            error_min_count: 5,
            error_min_sessions: 2,
        }
    }
}

/// A rule, in the specification's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuggestionRule {
    /// `completion_rate < 70%`
    LowCompletionRate,
    /// `avg_tool_efficiency < 3`
    LowToolEfficiency,
    /// `error_recovery_rate < 80%`
    LowErrorRecoveryRate,
    /// Specific task type low
    LowTaskType,
    /// Specific tool high errors
    HighToolErrors,
    /// Specific error common
    CommonError,
}

/// A suggestion with its reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// Rule that made the suggestion.
    pub rule: SuggestionRule,
    /// Text given by the specification.
    pub text: String,
    /// Additional advice for the owner; not part of the specification.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub advice: Option<String>,
    /// Example error message.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub example: Option<String>,
    /// Task type, tool or error cause that it is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub subject: Option<String>,
    /// A share of 0.0 to 1.0, or a mean of 1 to 5.
    pub measured: f64,
    /// Threshold that it was compared with.
    pub threshold: f64,
    /// Sample size: sessions, calls of the tool, or all errors.
    pub n: u64,
    /// Number of cases in the share; absent for a mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub count: Option<u64>,
    /// Requests of `sessions`, in the same order.
    #[serde(default)]
    pub titles: Vec<String>,
    /// IDs of the affected sessions, newest first.
    pub sessions: TruncatedList<String>,
    /// True if a finding of the same report covers this with its cause. Readable reports leave it
    /// out then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said_by_finding: bool,
}

/// The suggestions of all rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestions {
    /// Suggestions in the order of the rules, the worst first within a rule.
    pub items: Vec<Suggestion>,
    /// Number of further suggestions from the same rules.
    pub left_out: u64,
    /// True if there are too few sessions for any rule.
    pub too_few_sessions: bool,
    /// Minimum number of sessions before a rule applies.
    pub min_sessions: u64,
}

impl Suggestions {
    /// Applies the rules to some records.
    pub fn from_records<'a>(
        records: impl IntoIterator<Item = &'a GradeRecord>,
        rules: &SuggestionRules,
    ) -> Self {
        let records = patterns::newest_first(records);
        let mut found = Self {
            items: Vec::new(),
            left_out: 0,
            too_few_sessions: (records.len() as u64) < rules.min_sessions,
            min_sessions: rules.min_sessions,
        };
        if !found.too_few_sessions {
            found.items = overall_suggestions(&records, rules);
            for suggestions in [
                task_type_suggestions(&records, rules),
                tool_suggestions(&records, rules),
                error_suggestions(&records, rules),
            ] {
                // A rule for all sessions speaks once; these speak once per type, tool or cause.
                let suggestions = TruncatedList::new(suggestions, MAX_PER_RULE);
                found.items.extend(suggestions.items);
                found.left_out += suggestions.left_out;
            }
            for one in &mut found.items {
                one.titles = patterns::session_titles(&records, &one.sessions);
            }
        }
        found
    }

    /// Marks suggestions that the findings already cover, so that each cause has only one
    /// suggestion.
    #[must_use]
    pub(super) fn mark_covered_by(mut self, findings: &ErrorFindings) -> Self {
        for one in &mut self.items {
            let subject = one.subject.as_deref().unwrap_or_default();
            one.said_by_finding = match one.rule {
                SuggestionRule::CommonError => findings.names_cause(subject),
                SuggestionRule::HighToolErrors => findings.names_tool(subject),
                _ => false,
            };
        }
        self
    }

    /// Returns the suggestions that no finding covers.
    pub fn of_rules(&self) -> impl Iterator<Item = &Suggestion> {
        self.items.iter().filter(|one| !one.said_by_finding)
    }
}

/// Applies the rules that cover all sessions.
fn overall_suggestions(records: &[&GradeRecord], rules: &SuggestionRules) -> Vec<Suggestion> {
    let summary = GradeSummary::from_records(records.iter().copied());
    let of_share =
        |rule, text: &str, share: Proportion, threshold, failed: fn(&GradeRecord) -> bool| {
            Suggestion {
                rule,
                text: text.to_owned(),
                advice: None,
                example: None,
                titles: Vec::new(),
                said_by_finding: false,
                subject: None,
                measured: share.rate.unwrap_or(f64::NAN),
                threshold,
                n: share.of,
                count: Some(share.count),
                sessions: patterns::matching_sessions(records, failed),
            }
        };
    let all = [
        of_share(
            SuggestionRule::LowCompletionRate,
            "Add pre-task planning steps",
            summary.completion_rate,
            rules.completion_rate,
            |record| !record.task_completed,
        ),
        Suggestion {
            rule: SuggestionRule::LowToolEfficiency,
            text: "Review error recovery patterns".to_owned(),
            advice: None,
            example: None,
            titles: Vec::new(),
            said_by_finding: false,
            subject: None,
            measured: summary.avg_tool_efficiency.unwrap_or(f64::NAN),
            threshold: rules.tool_efficiency,
            n: summary.sessions,
            count: None,
            sessions: patterns::matching_sessions(records, |record| {
                f64::from(record.tool_calls_efficient.get()) < rules.tool_efficiency
            }),
        },
        of_share(
            SuggestionRule::LowErrorRecoveryRate,
            "Implement better fallback strategies",
            summary.error_recovery_rate,
            rules.error_recovery_rate,
            |record| record.total_errors > 0 && !record.errors_recovered,
        ),
    ];
    // The value is NaN if nothing could be measured, and then never below the threshold.
    let speaks = |one: &Suggestion| one.n >= rules.min_sessions && one.measured < one.threshold;
    all.into_iter().filter(speaks).collect()
}

fn task_type_suggestions(records: &[&GradeRecord], rules: &SuggestionRules) -> Vec<Suggestion> {
    let types = PatternTally::from_records(records.iter().copied()).task_types();
    let low = types.into_iter().filter(|pattern| {
        pattern.sessions >= rules.min_sessions && pattern.score < rules.task_type_score
    });
    low.map(|pattern| Suggestion {
        rule: SuggestionRule::LowTaskType,
        text: format!("Consider skill enhancement for {}", pattern.task_type),
        advice: None,
        example: None,
        titles: Vec::new(),
        said_by_finding: false,
        subject: Some(pattern.task_type.to_string()),
        measured: pattern.score,
        threshold: rules.task_type_score,
        n: pattern.sessions,
        count: None,
        sessions: patterns::matching_sessions(records, |record| {
            record.details.task_type == pattern.task_type
                && session_score(record) < rules.task_type_score
        }),
    })
    .collect()
}

fn tool_suggestions(records: &[&GradeRecord], rules: &SuggestionRules) -> Vec<Suggestion> {
    let tools = PatternTally::from_records(records.iter().copied()).tools();
    let high = tools.into_iter().filter_map(|pattern| {
        let rate = pattern.error_rate?;
        // A rate of a few calls jumps, so a minimum of errors is required as well.
        let speaks = pattern.errors >= rules.tool_min_errors && rate > rules.tool_error_rate;
        speaks.then_some((pattern, rate))
    });
    high.map(|(pattern, rate)| Suggestion {
        rule: SuggestionRule::HighToolErrors,
        text: format!("Review usage patterns for {}", pattern.tool),
        advice: None,
        example: None,
        titles: Vec::new(),
        said_by_finding: false,
        measured: rate,
        threshold: rules.tool_error_rate,
        n: pattern.calls,
        count: Some(pattern.errors),
        sessions: patterns::matching_sessions(records, |record| {
            record.details.tools.get(&pattern.tool).is_some_and(|used| used.errors > 0)
        }),
        subject: Some(pattern.tool),
    })
    .collect()
}

fn error_suggestions(records: &[&GradeRecord], rules: &SuggestionRules) -> Vec<Suggestion> {
    let causes = PatternTally::from_records(records.iter().copied()).error_causes();
    let all = total(causes.iter().map(|pattern| pattern.count));
    // `Unknown` is a catch-all that cannot be handled as one kind of error.
    let specific = causes.into_iter().filter(|pattern| pattern.cause != ErrorCause::Unknown);
    let common = specific.filter(|pattern| {
        pattern.share >= rules.error_share
            && pattern.count >= rules.error_min_count
            && pattern.sessions.total() >= rules.error_min_sessions
    });
    common
        .map(|pattern| Suggestion {
            rule: SuggestionRule::CommonError,
            text: format!("Add targeted error handling for {}", pattern.cause),
            advice: pattern.advice,
            example: Some(pattern.example),
            subject: Some(pattern.cause.to_string()),
            measured: pattern.share,
            threshold: rules.error_share,
            n: all,
            count: Some(pattern.count),
            titles: Vec::new(),
            said_by_finding: false,
            sessions: pattern.sessions,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grade::fixture::{hostile, record, two_months};
    use crate::grade::{ErrorClass, TaskType, Week};

    fn of(records: &[GradeRecord]) -> Suggestions {
        Suggestions::from_records(records, &SuggestionRules::default())
    }

    #[test]
    fn every_rule_says_the_specified_words() {
        let week: Week = "2026-W47".parse().unwrap();
        let records: Vec<GradeRecord> = two_months()
            .into_iter()
            .filter(|record| record.started_at().map(Week::containing) == Some(week))
            .collect();
        let mut found = of(&records);
        let texts: Vec<&str> = found.items.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "Add pre-task planning steps",
                "Review error recovery patterns",
                "Implement better fallback strategies",
                "Consider skill enhancement for debugging",
                "Review usage patterns for read_file",
                "Add targeted error handling for file_not_found",
                "Add targeted error handling for command_failed",
            ]
        );
        let first = found.items.remove(0);
        assert_eq!((first.measured, first.threshold, first.n), (0.583_333, 0.7, 12));
        assert_eq!((first.count, first.sessions.total()), (Some(7), 5));
        let second = found.items.remove(0);
        assert_eq!((second.measured, second.threshold, second.count), (2.833_333, 3.0, None));
    }

    #[test]
    fn thresholds_are_exclusive_as_specified() {
        let records: Vec<GradeRecord> =
            (0..10).map(|id| record(&id.to_string(), TaskType::General, id < 7, 3, 3)).collect();
        assert!(of(&records).items.is_empty(), "70 % and 3 are not low");
        let used = records[0].clone().used("bash", 20).failed("bash", ErrorClass::Timeout, 5, "");
        let rest = records[1..].iter().cloned();
        let found = of(&std::iter::once(used).chain(rest).collect::<Vec<_>>());
        assert!(found.items.is_empty(), "5 of 25 calls is not over 20 %, 1 session not 2");
    }

    #[test]
    fn errors_without_a_class_are_no_specific_error() {
        let failed = |class| -> Vec<GradeRecord> {
            (0..5)
                .map(|id| {
                    record(&id.to_string(), TaskType::General, true, 3, 3)
                        .used("bash", 30)
                        .failed("bash", class, 2, "x")
                })
                .collect()
        };
        let texts = |class| -> Vec<String> {
            of(&failed(class)).items.into_iter().map(|item| item.text).collect()
        };
        assert!(texts(ErrorClass::Unknown).is_empty());
        assert_eq!(texts(ErrorClass::Timeout), ["Add targeted error handling for timeout"]);
    }

    #[test]
    fn too_few_sessions_are_no_reason() {
        let few = of(&hostile()[..2]);
        assert!(few.too_few_sessions && few.items.is_empty());
        assert!(!of(&hostile()).too_few_sessions);
        assert!(of(&[]).too_few_sessions);
    }
}
