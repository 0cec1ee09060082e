//! Advice on the model tier that a type of task needs, based on recent results
//! (docs/spec/session-grades.md#routing).
//!
//! It does not choose a model: tiers are names that a router understands.

use std::iter::repeat_n;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::grade::patterns::session_score;
use crate::grade::share::rounded;
use crate::grade::{GradeRecord, Proportion, TaskType};
use selftest_stats::{Interval, TestTail, mann_whitney, mean, mean_interval};

/// Minimum number of sessions for high confidence.
const MIN_CONFIDENT_SESSIONS: usize = 20;
/// Maximum half-width of the score's interval for high confidence (`MAX_HALF_WIDTH_HIGH`) and for medium
/// confidence (`MAX_HALF_WIDTH_MEDIUM`).
const MAX_HALF_WIDTH_HIGH: f64 = 0.5;
const MAX_HALF_WIDTH_MEDIUM: f64 = 1.0;

/// The `routing` section: model tier to suggest for a type of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingSettings {
    /// Number of days that a score covers. Its trend compares with as many days before them.
    #[schemars(range(min = 1, max = 3650))]
    pub days: u32,
    /// Minimum number of sessions of a type before a tier is suggested, and on each side of a
    /// trend.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub min_sessions: u64,
    /// Significance level of the trend test.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// A task type is weak if its score is below this; skills are recommended for it.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub weak_score: f64,
    /// Tiers of models. The suggestion is the highest tier whose `min_score` the score reaches.
    #[schemars(length(min = 1, max = 20))]
    pub tiers: Vec<ModelTier>,
    /// Skills known to help with a task type.
    #[schemars(length(max = 1000))]
    pub skills: Vec<KnownSkill>,
}

/// A row of the tier table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelTier {
    /// Name of the tier, as the router knows it.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Minimum score, 1 to 5, at which this tier suffices.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub min_score: f64,
}

/// A skill and the task type that it helps with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownSkill {
    /// Task type.
    pub task_type: TaskType,
    /// Name of the skill.
    #[schemars(length(min = 1, max = 200))]
    pub skill: String,
}

impl Default for RoutingSettings {
    /// docs/spec/session-grades.md#routing asks for a more capable model below 3, and
    /// #skill-recommendations names `systematic-debugging`. The other defaults are ours.
    fn default() -> Self {
        let tier = |name: &str, min_score| ModelTier { name: name.to_owned(), min_score };
        Self {
            days: 28,
            min_sessions: 5,
            alpha: 0.05,
            weak_score: 3.0,
            tiers: vec![tier("small", 4.0), tier("medium", 3.0), tier("large", 1.0)],
            skills: vec![KnownSkill {
                task_type: TaskType::Debugging,
                skill: "systematic-debugging".to_owned(),
            }],
        }
    }
}

/// Direction of a score's trend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TrendDirection {
    /// Significantly higher than before.
    Better,
    /// Significantly lower than before.
    Worse,
    /// No significant difference.
    Steady,
    /// Too few sessions for a test.
    Unknown,
}

selftest_text::named!(TrendDirection);

/// Comparison of the score with that of an equal number of days before.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScoreTrend {
    /// Direction of the trend.
    pub direction: TrendDirection,
    /// Score of the days before, 1 to 5; null without sessions.
    pub before: Option<f64>,
    /// Number of sessions in the days before.
    pub sessions_before: u64,
    /// Name of the statistical test.
    pub test: &'static str,
    /// Two-sided p-value; null if no test was made.
    pub p: Option<f64>,
}

/// Confidence in a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ScoreConfidence {
    /// Too few sessions, or an interval wider than ±1.0.
    Low,
    /// Between low and high.
    Medium,
    /// At least 20 sessions and an interval of at most ±0.5.
    High,
}

selftest_text::named!(ScoreConfidence);

/// Measurements and suggested tier for one task type.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RoutingAdvice {
    /// Task type.
    #[schema(value_type = String)]
    pub task_type: TaskType,
    /// Number of sessions.
    pub sessions: u64,
    /// Mean of efficiency, quality and completion, 1 to 5; null without sessions.
    pub score: Option<f64>,
    /// 95 % interval of the score; null with fewer than two sessions, or if all have the same
    /// score.
    #[schema(value_type = Option<Object>)]
    pub interval: Option<Interval>,
    /// Share of completed sessions, with its interval.
    #[schema(value_type = Object)]
    pub completion_rate: Proportion,
    /// Comparison with the days before.
    pub trend: ScoreTrend,
    /// Confidence in the score.
    pub confidence: ScoreConfidence,
    /// Suggested tier of models; null with too few sessions.
    pub tier: Option<String>,
    /// Reason for the tier, or for the lack of one.
    pub why: String,
}

/// Returns the start of the window that a score ending at `to` covers, and the start of the window
/// of its trend.
pub fn trend_windows(to: Timestamp, settings: &RoutingSettings) -> (Timestamp, Timestamp) {
    let days = i64::from(settings.days);
    let before = |days| to.checked_sub(SignedDuration::from_hours(24 * days));
    (before(days).unwrap_or(Timestamp::MIN), before(2 * days).unwrap_or(Timestamp::MIN))
}

/// Sessions of one task type with the same score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredSessions {
    /// Task type.
    pub task_type: TaskType,
    /// True if the score itself counts them; false if only the trend does.
    pub is_recent: bool,
    /// Score of each session, 1 to 5.
    pub score: f64,
    /// True if the sessions were completed.
    pub is_completed: bool,
    /// Number of sessions.
    pub sessions: u64,
}

impl ScoredSessions {
    /// Converts a single graded session, with overrides applied. Returns `None` if rates exclude
    /// the session, or if it is undated or older than the window.
    pub fn from_grade(
        record: &GradeRecord,
        to: Timestamp,
        settings: &RoutingSettings,
    ) -> Option<Self> {
        let (from, earliest) = trend_windows(to, settings);
        let at = record.started_at()?;
        (record.is_task() && earliest <= at).then(|| Self {
            task_type: record.details.task_type,
            is_recent: from <= at,
            score: session_score(record),
            is_completed: record.task_completed,
            sessions: 1,
        })
    }
}

/// Returns advice from the sessions up to `to`, in any order.
///
/// Later sessions count as recent too, since the clock of a recording machine may run ahead. With
/// `only`, returns advice for that type alone, even if it has no sessions.
pub fn advise(
    scored: &[ScoredSessions],
    only: Option<TaskType>,
    settings: &RoutingSettings,
) -> Vec<RoutingAdvice> {
    let mut items: Vec<RoutingAdvice> = TaskType::ALL
        .iter()
        .copied()
        .filter(|task_type| only.is_none_or(|only| only == *task_type))
        .filter_map(|task_type| {
            let own = scored.iter().filter(|scored| scored.task_type == task_type);
            let (now, before): (Vec<&ScoredSessions>, Vec<&ScoredSessions>) =
                own.partition(|scored| scored.is_recent);
            let is_wanted = only.is_some() || !now.is_empty() || !before.is_empty();
            is_wanted.then(|| RoutingAdvice::from_sessions(task_type, &now, &before, settings))
        })
        .collect();
    let key = |advice: &RoutingAdvice| advice.score.unwrap_or(f64::INFINITY);
    // Types without a score sort last.
    items.sort_by(|a, b| key(a).total_cmp(&key(b)));
    items
}

impl RoutingAdvice {
    fn from_sessions(
        task_type: TaskType,
        now: &[&ScoredSessions],
        before: &[&ScoredSessions],
        settings: &RoutingSettings,
    ) -> Self {
        let scores = |scored: &[&ScoredSessions]| -> Vec<f64> {
            let each = |scored: &&ScoredSessions| {
                repeat_n(scored.score, usize::try_from(scored.sessions).unwrap_or_default())
            };
            scored.iter().flat_map(each).collect()
        };
        let (scores, earlier) = (scores(now), scores(before));
        // Rounded first, so that floating-point error does not make a mean miss a tier's minimum.
        let score = mean(&scores).map(rounded);
        let interval = mean_interval(&scores).map(|Interval { low, high }| Interval {
            low: rounded(low.max(1.0)),
            high: rounded(high.min(5.0)),
        });
        let sessions = scores.len() as u64;
        let enough = sessions >= settings.min_sessions;
        let completed = now.iter().filter(|scored| scored.is_completed);
        let completed = completed.map(|scored| scored.sessions).sum();
        let tier = score.filter(|_| enough).and_then(|score| tier(score, &settings.tiers));
        let why = match (score, tier) {
            (Some(score), Some(tier)) => format!(
                "{score:.2} is at least {:.2}, the minimum for `{}`",
                tier.min_score, tier.name
            ),
            (Some(score), None) if enough => format!("no tier is for a score of {score:.2}"),
            _ => format!("{sessions} sessions; needs {}", settings.min_sessions),
        };
        Self {
            task_type,
            sessions,
            score,
            interval,
            completion_rate: Proportion::new(completed, sessions),
            trend: ScoreTrend::compare(&scores, &earlier, settings),
            confidence: confidence(&scores, enough),
            tier: tier.map(|tier| tier.name.clone()),
            why,
        }
    }
}

/// Returns the highest tier whose minimum score is reached.
fn tier(score: f64, tiers: &[ModelTier]) -> Option<&ModelTier> {
    let reached = tiers.iter().filter(|tier| score >= tier.min_score);
    reached.max_by(|a, b| a.min_score.total_cmp(&b.min_score))
}

fn confidence(scores: &[f64], enough: bool) -> ScoreConfidence {
    // Uses the unclamped interval; the published one is limited to 1 to 5. Identical scores have no
    // interval and no spread.
    let half = mean_interval(scores).map_or(0.0, |ends| (ends.high - ends.low) / 2.0);
    if !enough || half > MAX_HALF_WIDTH_MEDIUM {
        ScoreConfidence::Low
    } else if scores.len() >= MIN_CONFIDENT_SESSIONS && half <= MAX_HALF_WIDTH_HIGH {
        ScoreConfidence::High
    } else {
        ScoreConfidence::Medium
    }
}

impl ScoreTrend {
    fn compare(now: &[f64], before: &[f64], settings: &RoutingSettings) -> Self {
        let enough = now.len().min(before.len()) as u64 >= settings.min_sessions;
        let test = |tail| mann_whitney(now, before, tail).filter(|_| enough);
        let (less, greater) = (test(TestTail::Less), test(TestTail::Greater));
        // The two-sided p-value is twice the smaller tail.
        let p = less.zip(greater).map(|(less, greater)| (2.0 * less.min(greater)).min(1.0));
        let direction = match (p, less < greater) {
            (None, _) => TrendDirection::Unknown,
            (Some(p), true) if p < settings.alpha => TrendDirection::Worse,
            (Some(p), false) if p < settings.alpha => TrendDirection::Better,
            (Some(_), _) => TrendDirection::Steady,
        };
        Self {
            direction,
            before: mean(before).map(rounded),
            sessions_before: before.len() as u64,
            test: "Mann-Whitney rank test, two-sided",
            p: p.map(rounded),
        }
    }
}

#[cfg(test)]
mod tests;
