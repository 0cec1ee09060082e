//! Which model a kind of task needs (docs/spec/session-grades.md#routing), from how it went lately.
//! Pure; chooses no model: tiers are names that a router knows.

use std::iter::repeat_n;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

use crate::grade::patterns::session_score;
use crate::grade::share::rounded;
use crate::grade::{GradeRecord, Share, TaskType};
use selftest_stats::{Interval, Tail, mann_whitney, mean, mean_interval};

/// Sessions from which on confidence can be high.
const MANY: usize = 20;
/// Half the width of the score's interval up to which confidence can be high, and above which it
/// is low.
const NARROW: f64 = 0.5;
const WIDE: f64 = 1.0;

/// The `routing` section: which kind of model is suggested for a type of task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoutingSettings {
    /// Days that a score looks back, and that its trend looks back before them.
    #[schemars(range(min = 1, max = 3650))]
    pub days: u32,
    /// Fewest sessions of a type before a tier is suggested, and on each side of a trend.
    #[schemars(range(min = 2, max = 1_000_000))]
    pub min_sessions: u64,
    /// The chance at which a trend that is none is called one.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// A task type is weak when its score is below this: skills are recommended for it.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub weak_score: f64,
    /// Tiers of models. Of those whose `min_score` the score reaches, the highest is suggested.
    #[schemars(length(min = 1, max = 20))]
    pub tiers: Vec<Tier>,
    /// Skills that are known to help with a task type.
    #[schemars(length(max = 1000))]
    pub skills: Vec<KnownSkill>,
}

/// One row of the table of tiers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The name by which a router knows it.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// Least score, 1 to 5, at which it is enough.
    #[schemars(range(min = 1.0, max = 5.0))]
    pub min_score: f64,
}

/// A skill and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownSkill {
    /// The type of task.
    pub task_type: TaskType,
    /// The skill.
    #[schemars(length(min = 1, max = 200))]
    pub skill: String,
}

impl Default for RoutingSettings {
    /// docs/spec/session-grades.md#routing: below 3 a more capable model; #skill-recommendations:
    /// `systematic-debugging`. The others are ours.
    fn default() -> Self {
        let tier = |name: &str, min_score| Tier { name: name.to_owned(), min_score };
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

/// Where a score goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Direction {
    /// Higher than before, beyond chance.
    Better,
    /// Lower than before, beyond chance.
    Worse,
    /// No difference that chance would not make.
    Steady,
    /// Too few sessions for a test.
    Unknown,
}

selftest_text::named!(Direction);

/// The score against that of as many days before.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ScoreTrend {
    /// Where it goes.
    pub direction: Direction,
    /// The score of the days before, 1 to 5; null without sessions.
    pub before: Option<f64>,
    /// Sessions of the days before.
    pub sessions_before: u64,
    /// The test, in plain words.
    pub test: &'static str,
    /// Its two-sided p-value; null where no test was made.
    pub p: Option<f64>,
}

/// How far a score can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Confidence {
    /// Too few sessions, or an interval wider than ±1.0.
    Low,
    /// Neither low nor high.
    Medium,
    /// 20 sessions or more, and an interval of at most ±0.5.
    High,
}

selftest_text::named!(Confidence);

/// The measurements of one type of task.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Advice {
    /// The type.
    #[schema(value_type = String)]
    pub task_type: TaskType,
    /// Its sessions.
    pub sessions: u64,
    /// Mean of efficiency, quality and completion, 1 to 5; null without sessions.
    pub score: Option<f64>,
    /// The score's 95 % interval; null of fewer than two sessions, and where all have the same
    /// score.
    #[schema(value_type = Option<Object>)]
    pub interval: Option<Interval>,
    /// Share of completed sessions, with its interval.
    #[schema(value_type = Object)]
    pub completion_rate: Share,
    /// Against the days before.
    pub trend: ScoreTrend,
    /// How far the score can be trusted.
    pub confidence: Confidence,
    /// The tier of models that is suggested; null with too few sessions.
    pub tier: Option<String>,
    /// Why that tier, or why none.
    pub why: String,
}

/// The first moment that a score of this end looks at, and the first that its trend does.
pub fn window(to: Timestamp, settings: &RoutingSettings) -> (Timestamp, Timestamp) {
    let days = i64::from(settings.days);
    let before = |days| to.checked_sub(SignedDuration::from_hours(24 * days));
    (before(days).unwrap_or(Timestamp::MIN), before(2 * days).unwrap_or(Timestamp::MIN))
}

/// Sessions of one type that came to the same score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// The type.
    pub task_type: TaskType,
    /// Whether the score looks at them, or only its trend.
    pub is_recent: bool,
    /// The score of each of them, 1 to 5.
    pub score: f64,
    /// Whether they were completed.
    pub is_completed: bool,
    /// How many there are.
    pub sessions: u64,
}

impl Scored {
    /// A session by itself, overrides applied; nothing where no rate counts it, or it is from
    /// before the window.
    pub fn of(record: &GradeRecord, to: Timestamp, settings: &RoutingSettings) -> Option<Self> {
        let (from, earliest) = window(to, settings);
        let at = record.details.counts_at;
        (record.is_task() && earliest <= at).then(|| Self {
            task_type: record.details.task_type,
            is_recent: from <= at,
            score: session_score(record),
            is_completed: record.task_completed,
            sessions: 1,
        })
    }
}

/// Advice from the sessions up to a moment, in any order. Those after it count as of it: the clock
/// of a recording machine may run ahead. `only`: one type, with or without sessions.
pub fn advise(
    scored: &[Scored],
    only: Option<TaskType>,
    settings: &RoutingSettings,
) -> Vec<Advice> {
    let mut items: Vec<Advice> = TaskType::ALL
        .iter()
        .copied()
        .filter(|task_type| only.is_none_or(|only| only == *task_type))
        .filter_map(|task_type| {
            let own = scored.iter().filter(|scored| scored.task_type == task_type);
            let (now, before): (Vec<&Scored>, Vec<&Scored>) =
                own.partition(|scored| scored.is_recent);
            let is_wanted = only.is_some() || !now.is_empty() || !before.is_empty();
            is_wanted.then(|| Advice::of(task_type, &now, &before, settings))
        })
        .collect();
    let key = |advice: &Advice| advice.score.unwrap_or(f64::INFINITY);
    items.sort_by(|a, b| key(a).total_cmp(&key(b)));
    items
}

impl Advice {
    fn of(
        task_type: TaskType,
        now: &[&Scored],
        before: &[&Scored],
        settings: &RoutingSettings,
    ) -> Self {
        let scores = |scored: &[&Scored]| -> Vec<f64> {
            let each = |scored: &&Scored| {
                repeat_n(scored.score, usize::try_from(scored.sessions).unwrap_or_default())
            };
            scored.iter().flat_map(each).collect()
        };
        let (scores, earlier) = (scores(now), scores(before));
        // Rounded first: a mean that is a tier's least score must not miss it by a bit.
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
                "a score of {score:.2} reaches {:.2}, the least of {}",
                tier.min_score, tier.name
            ),
            (Some(score), None) if enough => format!("no tier is for a score of {score:.2}"),
            _ => format!("{sessions} of the {} sessions that it takes", settings.min_sessions),
        };
        Self {
            task_type,
            sessions,
            score,
            interval,
            completion_rate: Share::new(completed, sessions),
            trend: ScoreTrend::of(&scores, &earlier, settings),
            confidence: confidence(&scores, enough),
            tier: tier.map(|tier| tier.name.clone()),
            why,
        }
    }
}

/// The highest tier whose least score is reached.
fn tier(score: f64, tiers: &[Tier]) -> Option<&Tier> {
    let reached = tiers.iter().filter(|tier| score >= tier.min_score);
    reached.max_by(|a, b| a.min_score.total_cmp(&b.min_score))
}

fn confidence(scores: &[f64], enough: bool) -> Confidence {
    // Of the whole interval: its ends are shown within 1 to 5. Scores that are all the same have
    // none, and no spread.
    let half = mean_interval(scores).map_or(0.0, |ends| (ends.high - ends.low) / 2.0);
    if !enough || half > WIDE {
        Confidence::Low
    } else if scores.len() >= MANY && half <= NARROW {
        Confidence::High
    } else {
        Confidence::Medium
    }
}

impl ScoreTrend {
    fn of(now: &[f64], before: &[f64], settings: &RoutingSettings) -> Self {
        let enough = now.len().min(before.len()) as u64 >= settings.min_sessions;
        let test = |tail| mann_whitney(now, before, tail).filter(|_| enough);
        let (less, greater) = (test(Tail::Less), test(Tail::Greater));
        let p = less.zip(greater).map(|(less, greater)| (2.0 * less.min(greater)).min(1.0));
        let direction = match (p, less < greater) {
            (None, _) => Direction::Unknown,
            (Some(p), true) if p < settings.alpha => Direction::Worse,
            (Some(p), false) if p < settings.alpha => Direction::Better,
            (Some(_), _) => Direction::Steady,
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
