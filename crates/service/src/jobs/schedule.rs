//! Decides which scheduled jobs are due (docs/spec/skills-and-signals.md#schedule). Pure functions
//! without clock or database.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::ScheduleSettings;

/// A scheduled job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Detects gaps in the agent's skills.
    GapDetection,
    /// Drafts, tests and proposes skills for a few gaps.
    SkillGeneration,
    /// Writes the weekly report.
    WeeklyReport,
    /// Scores skills and disables ineffective ones.
    SkillScoring,
}

impl JobKind {
    /// All jobs, in the order in which they run when several are due at the same time.
    pub const ALL: [JobKind; 4] = [
        JobKind::GapDetection,
        JobKind::SkillGeneration,
        JobKind::WeeklyReport,
        JobKind::SkillScoring,
    ];

    /// Returns the specified name, used for display and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            JobKind::GapDetection => "run_gap_detection",
            JobKind::SkillGeneration => "run_skill_generation_batch",
            JobKind::WeeklyReport => "run_weekly_digest",
            JobKind::SkillScoring => "run_skill_effectiveness_scoring",
        }
    }

    /// Returns a one-line description.
    pub const fn description(self) -> &'static str {
        match self {
            JobKind::GapDetection => {
                "grades new sessions by rules and looks for gaps in the skills"
            }
            JobKind::SkillGeneration => {
                "lets a model draft skills for a few open gaps, and tests them"
            }
            JobKind::WeeklyReport => {
                "grades new sessions by rules and writes the report of the week"
            }
            JobKind::SkillScoring => "scores the skills in use and disables those that do not work",
        }
    }

    /// Returns the job with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        JobKind::ALL.into_iter().find(|job| job.name() == name)
    }

    /// Returns the job's schedule from the configuration: a cron expression, or [`OFF`].
    pub fn schedule(self, settings: &ScheduleSettings) -> &str {
        match self {
            JobKind::GapDetection => &settings.gap_detection,
            JobKind::SkillGeneration => &settings.skill_generation,
            JobKind::WeeklyReport => &settings.weekly_report,
            JobKind::SkillScoring => &settings.skill_scoring,
        }
    }
}

impl Serialize for JobKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Schedule of a job that does not run automatically.
pub const OFF: &str = "off";

/// A cron schedule with five fields (minute, hour, day of the month, month, weekday) in UTC.
#[derive(Debug, Clone)]
pub struct CronSchedule(croner::Cron);

/// A text is not a schedule.
#[derive(Debug, thiserror::Error)]
pub enum CronScheduleError {
    /// Too few or too many fields.
    #[error("expected five fields, found {0}")]
    Fields(usize),
    /// A field with an invalid value.
    #[error("{}", last_part(.0))]
    Value(#[from] croner::errors::CronError),
}

/// Returns the last part of the message, which states the problem.
fn last_part(error: &croner::errors::CronError) -> String {
    let words = error.to_string();
    words.rsplit(": ").next().unwrap_or(&words).trim_end_matches('.').to_lowercase()
}

impl CronSchedule {
    /// Parses a schedule such as `30 3 * * SUN`; weekdays are 0 (Sunday) to 6 or names. Returns
    /// `None` for [`OFF`].
    pub fn parse(text: &str) -> Result<Option<Self>, CronScheduleError> {
        use croner::parser::{CronParser, Seconds, Year};
        if text.trim().eq_ignore_ascii_case(OFF) {
            return Ok(None);
        }
        let fields = text.split_whitespace().count();
        // croner also takes six and seven fields, with seconds first: a sixth field would silently
        // shift the meaning of all others.
        if fields != 5 {
            return Err(CronScheduleError::Fields(fields));
        }
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        Ok(Some(Self(parser.parse(text)?)))
    }

    /// Returns the last scheduled time at or before `now`, if any.
    pub fn latest(&self, now: Timestamp) -> Option<Timestamp> {
        let found = self.0.find_previous_occurrence(&now.to_zoned(TimeZone::UTC), true);
        found.ok().map(|zoned| zoned.timestamp())
    }

    /// Returns the first scheduled time after `now`, if any.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        let found = self.0.find_next_occurrence(&now.to_zoned(TimeZone::UTC), false);
        found.ok().map(|zoned| zoned.timestamp())
    }
}

/// A job and the time at which it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobSlot {
    /// The job.
    pub job: JobKind,
    /// Due time.
    pub at: Timestamp,
}

/// Returns the jobs that are due at `now`, in the order of their due times. `ended` contains the
/// latest finished slot of each job; the caller leaves out slots far ahead of `now`, which come
/// from a wrong clock.
///
/// A job is due if its latest scheduled time has passed and it has not run for it, however long ago
/// that was. Missed runs are made up for once, however many were missed. A job with an invalid
/// schedule is never due: the configuration is checked when it is loaded.
pub fn due_slots(
    jobs: &[JobKind],
    settings: &ScheduleSettings,
    ended: &BTreeMap<String, Timestamp>,
    now: Timestamp,
) -> Vec<JobSlot> {
    let slot = |&job: &JobKind| {
        let cron = CronSchedule::parse(job.schedule(settings)).ok().flatten()?;
        let at = cron.latest(now)?;
        // `>=` and not `==`: after a schedule was changed, the finished slot lies between the new
        // ones.
        let is_done = ended.get(job.name()).is_some_and(|&last| last >= at);
        (!is_done).then_some(JobSlot { job, at })
    };
    let mut slots: Vec<JobSlot> = jobs.iter().filter_map(slot).collect();
    // The sort is stable, so jobs due at the same time keep their order.
    slots.sort_by_key(|slot| slot.at);
    slots
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn cron(text: &str) -> CronSchedule {
        CronSchedule::parse(text).unwrap().unwrap()
    }

    /// Returns the due slots of the report with the specified schedule.
    fn due_at(now: &str, ended: &[(JobKind, &str)]) -> Vec<(JobKind, String)> {
        due_of(&[JobKind::WeeklyReport], now, ended)
    }

    fn due_of(jobs: &[JobKind], now: &str, ended: &[(JobKind, &str)]) -> Vec<(JobKind, String)> {
        let ended = ended.iter().map(|(job, time)| (job.name().to_owned(), at(time))).collect();
        due_slots(jobs, &ScheduleSettings::default(), &ended, at(now))
            .into_iter()
            .map(|slot| (slot.job, slot.at.to_string()))
            .collect()
    }

    const SUNDAY: &str = "2026-11-22T03:30:00Z";

    /// docs/spec/skills-and-signals.md#schedule: Sundays at 03:00, 03:15, 03:30 and 04:00 UTC.
    #[test]
    fn the_specified_week() {
        let expected = [
            (JobKind::GapDetection, "2026-11-22T03:00:00Z"),
            (JobKind::SkillGeneration, "2026-11-22T03:15:00Z"),
            (JobKind::WeeklyReport, "2026-11-22T03:30:00Z"),
            (JobKind::SkillScoring, "2026-11-22T04:00:00Z"),
        ];
        let all = due_of(&JobKind::ALL, "2026-11-22T04:00:00Z", &[]);
        let expected = expected.map(|(job, at)| (job, at.to_owned()));
        assert_eq!(all, expected, "in the order of that morning");
        for (job, text) in expected {
            let others = due_of(&JobKind::ALL, "2026-11-22T04:00:00Z", &[(job, &text)]);
            assert_eq!(others.len(), JobKind::ALL.len() - 1);
            let next = cron(job.schedule(&ScheduleSettings::default())).next(at(SUNDAY)).unwrap();
            assert!(next > at(SUNDAY) && next <= at("2026-11-29T04:00:00Z"));
        }
    }

    #[test]
    fn due_from_the_second_on_and_until_it_has_run() {
        let before = [(JobKind::WeeklyReport, "2026-11-15T03:30:00Z")];
        assert_eq!(due_at("2026-11-22T03:29:59.999Z", &before), []);
        for now in ["2026-11-22T03:30:00Z", "2026-11-22T03:30:00.001Z", "2026-11-28T23:59:59Z"] {
            let due = due_at(now, &before);
            assert_eq!(due, [(JobKind::WeeklyReport, SUNDAY.to_owned())], "{now}");
        }
        let after = [(JobKind::WeeklyReport, SUNDAY)];
        assert_eq!(due_at("2026-11-28T23:59:59Z", &after), []);
        assert_eq!(due_at("2026-11-29T03:30:00Z", &after).len(), 1);
    }

    #[test]
    fn what_was_missed_runs_once() {
        let due =
            due_at("2026-11-25T12:00:00Z", &[(JobKind::WeeklyReport, "2026-08-02T03:30:00Z")]);
        assert_eq!(due, [(JobKind::WeeklyReport, SUNDAY.to_owned())]);
        // Asked for by hand after its time: that was it.
        let by_hand = [(JobKind::WeeklyReport, "2026-11-22T05:12:44Z")];
        assert_eq!(due_at("2026-11-25T12:00:00Z", &by_hand), []);
    }

    #[test]
    fn a_schedule_of_ones_own_or_none() {
        let settings = |text: &str| ScheduleSettings {
            weekly_report: text.to_owned(),
            ..ScheduleSettings::default()
        };
        let due = |text: &str| {
            due_slots(
                &[JobKind::WeeklyReport],
                &settings(text),
                &BTreeMap::new(),
                at("2026-11-25T12:00:00Z"),
            )
            .first()
            .map(|slot| slot.at.to_string())
        };
        assert_eq!(due("0 9 * * 1-5").as_deref(), Some("2026-11-25T09:00:00Z"));
        assert_eq!(due("*/15 * * * *").as_deref(), Some("2026-11-25T12:00:00Z"));
        assert_eq!(due("0 0 1 JAN *").as_deref(), Some("2026-01-01T00:00:00Z"));
        assert_eq!(due("0 0 31 2 *"), None, "never");
        assert_eq!((due("off"), due(" OFF ")), (None, None));
    }

    #[test]
    fn sunday_is_0_and_7_and_sun() {
        let sunday = Some(at(SUNDAY));
        for day in ["0", "7", "SUN", "sun"] {
            assert_eq!(cron(&format!("30 3 * * {day}")).latest(at("2026-11-23T00:00:00Z")), sunday);
        }
    }

    #[test]
    fn what_is_no_schedule() {
        for text in
            ["", "   ", "30 3 * *", "0 30 3 * * SUN", "60 3 * * 0", "x", "30 3 * * SUN 2026"]
        {
            assert!(CronSchedule::parse(text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "[0-9*/,A-Za-z@#?L -]{0,20}|\\PC{0,12}", seconds in 0i64..4_000_000_000) {
            if let Ok(Some(cron)) = CronSchedule::parse(&text) {
                let now = Timestamp::from_second(seconds).unwrap();
                prop_assert!(cron.latest(now).is_none_or(|time| time <= now));
                prop_assert!(cron.next(now).is_none_or(|time| time > now));
            }
        }
    }
}
