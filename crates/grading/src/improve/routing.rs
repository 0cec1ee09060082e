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
                // The store counts sessions with equal scores together; the tests need each.
                repeat_n(scored.score, usize::try_from(scored.sessions).unwrap_or_default())
            };
            scored.iter().flat_map(each).collect()
        };
        let (scores, earlier) = (scores(now), scores(before));
        // Rounded first, so that floating-point error does not make a mean miss a tier's minimum.
        let score = mean(&scores).map(rounded);
        let interval = mean_interval(&scores).map(|Interval { low, high }| Interval {
            // The formula knows nothing of the scale from 1 to 5.
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
    // The order of the tiers in the configuration does not matter.
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
mod tests {
    use super::*;
    use crate::grade::fixture::record;

    const NOW: &str = "2026-11-22T00:00:00Z";

    /// So many completed sessions of that efficiency and quality: a score of (2 level + 5) / 3.
    fn sessions(name: &str, count: usize, level: u8, at: &str) -> Vec<GradeRecord> {
        (0..count)
            .map(|id| {
                record(&format!("{name}{id}"), TaskType::Debugging, true, level, level).at(at)
            })
            .collect()
    }

    fn scored(records: &[GradeRecord], settings: &RoutingSettings) -> Vec<ScoredSessions> {
        let now = NOW.parse().unwrap();
        records
            .iter()
            .filter_map(|record| ScoredSessions::from_grade(record, now, settings))
            .collect()
    }

    fn advice(records: &[GradeRecord]) -> RoutingAdvice {
        let settings = RoutingSettings::default();
        let only = Some(TaskType::Debugging);
        advise(&scored(records, &settings), only, &settings).remove(0)
    }

    /// Sessions that are counted together weigh as much as each by itself.
    #[test]
    fn sessions_with_one_score_are_counted_together() {
        let settings = RoutingSettings::default();
        let at = "2026-11-20T10:00:00Z";
        let records = [sessions("a", 7, 2, at), sessions("b", 9, 4, at)].concat();
        let alone = scored(&records, &settings);
        let together = [
            ScoredSessions { sessions: 7, ..alone[0] },
            ScoredSessions { sessions: 9, ..alone[7] },
        ];
        assert_eq!(advise(&together, None, &settings), advise(&alone, None, &settings));
    }

    /// docs/spec/session-grades.md#routing: a score below 3 asks for a more capable model.
    #[test]
    fn below_three_a_more_capable_model() {
        for (level, score, tier) in
            [(1, 2.333_333, "large"), (2, 3.0, "medium"), (4, 4.333_333, "small")]
        {
            let advice = advice(&sessions("s", 6, level, "2026-11-20T10:00:00Z"));
            assert_eq!((advice.score, advice.tier.as_deref()), (Some(score), Some(tier)));
            assert_eq!(advice.completion_rate.count, 6);
        }
        let low = advice(&sessions("s", 6, 1, "2026-11-20T10:00:00Z"));
        assert_eq!(low.why, "2.33 is at least 1.00, the minimum for `large`");
    }

    /// docs/spec/session-grades.md#routing: 3 is not below 3, though a sum of thirds may miss it by a
    /// bit.
    #[test]
    fn a_mean_of_three_is_three() {
        let at = "2026-11-20T10:00:00Z";
        let mut records = vec![record("a", TaskType::Debugging, false, 1, 1).at(at)];
        records.extend(sessions("b", 1, 2, at));
        records.extend(sessions("c", 3, 3, at));
        assert_eq!(advice(&records).tier.as_deref(), Some("medium"));
    }

    #[test]
    fn sessions_of_the_last_days_and_of_a_clock_that_runs_ahead() {
        let of = |at: &str| advice(&sessions("s", 6, 3, at)).sessions;
        assert_eq!(of("2026-10-25T00:00:00Z"), 6, "28 days ago");
        assert_eq!(of("2026-10-24T23:59:59Z"), 0);
        assert_eq!(of("2026-11-22T01:00:00Z"), 6);
    }

    /// docs/spec/session-grades.md#routing: few sessions are no reason to change the model.
    #[test]
    fn too_few_sessions_have_no_tier() {
        let few = advice(&sessions("s", 4, 5, "2026-11-20T10:00:00Z"));
        assert_eq!((few.tier, few.confidence), (None, ScoreConfidence::Low));
        assert_eq!(few.why, "4 sessions; needs 5");
        let none = advice(&[]);
        assert_eq!((none.score, none.interval, none.tier), (None, None, None));
        assert_eq!(none.trend.direction, TrendDirection::Unknown);
        let settings = RoutingSettings { tiers: Vec::new(), ..RoutingSettings::default() };
        let records = sessions("s", 9, 5, "2026-11-20T10:00:00Z");
        let untiered = advise(&scored(&records, &settings), None, &settings).remove(0);
        assert_eq!(untiered.why, "no tier is for a score of 5.00");
    }

    /// docs/maintain-skills.md#routing: the trend is of these 4 weeks against the 4 before, with a stated
    /// test.
    #[test]
    fn four_weeks_against_the_four_before() {
        let (now, before, long_ago) =
            ("2026-11-20T10:00:00Z", "2026-10-20T10:00:00Z", "2026-09-20T10:00:00Z");
        let mixed = |first: u8, second: u8| {
            [
                sessions("now", 8, first, now),
                sessions("before", 8, second, before),
                sessions("old", 8, 1, long_ago),
            ]
            .concat()
        };
        for (first, second, direction) in [
            (2, 4, TrendDirection::Worse),
            (4, 2, TrendDirection::Better),
            (3, 3, TrendDirection::Steady),
        ] {
            let advice = advice(&mixed(first, second));
            assert_eq!((advice.trend.direction, advice.sessions), (direction, 8));
            assert_eq!(advice.trend.sessions_before, 8);
            assert!(advice.trend.p.is_some());
        }
        let alone = advice(&sessions("now", 8, 3, now));
        assert_eq!((alone.trend.direction, alone.trend.p), (TrendDirection::Unknown, None));
    }

    /// docs/maintain-skills.md#routing: confidence follows from n and the width of the interval.
    #[test]
    fn confidence_by_number_and_spread() {
        let at = "2026-11-20T10:00:00Z";
        let of = |records: Vec<GradeRecord>| advice(&records).confidence;
        assert_eq!(of(sessions("s", 20, 3, at)), ScoreConfidence::High);
        assert_eq!(of(sessions("s", 19, 3, at)), ScoreConfidence::Medium);
        // Scores of 5.0 and 2.33 half and half: ±0.64 of 20, ±1.5 of 6.
        let torn = |half| [sessions("a", half, 5, at), sessions("b", half, 1, at)].concat();
        assert_eq!(of(torn(10)), ScoreConfidence::Medium);
        assert_eq!(of(torn(3)), ScoreConfidence::Low);
        let ends = advice(&torn(3)).interval.unwrap();
        assert!(ends.low >= 1.0 && ends.high <= 5.0, "{ends:?}");
    }

    #[test]
    fn all_types_worst_first() {
        let at = "2026-11-20T10:00:00Z";
        let other = record("t", TaskType::Testing, true, 5, 5).at(at);
        let records = [sessions("s", 6, 2, at), vec![other]].concat();
        let settings = RoutingSettings::default();
        let items = advise(&scored(&records, &settings), None, &settings);
        let types: Vec<TaskType> = items.iter().map(|advice| advice.task_type).collect();
        assert_eq!(types, [TaskType::Debugging, TaskType::Testing]);
    }
}
