//! Derives patterns, summaries, weekly reports and alerts from the grades in the store.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::deliver::{HookReceiver, receivers};
use super::{ScanSummary, SelfGrader};
use selftest_grading::grade::agreement::{GraderAgreement, GraderCalibration};
use selftest_grading::grade::{
    Alert, GradeOverride, GradePatterns, GradeRecord, GradeSummary, QualityGrade, ReportRules,
    ScanCoverage, Week, WeeklyReport, apply_overrides,
};
use selftest_grading::report::weekly::summary_text;
use selftest_store::{FileOutcome, StoreError, StoredReport};
use selftest_text::wording::plural;

/// Number of earlier weeks that a report covers: its charts show twelve.
const WEEKS_BEFORE: i64 = 12;

/// Time after which an alert delivery is given up.
const MAX_DELIVERY: Duration = Duration::from_secs(30);

/// Maximum number of weeks in an index: twenty years.
const MAX_REPORTS: u64 = 1040;

/// A weekly report and the result of delivering its alerts.
#[derive(Debug, Clone, PartialEq)]
pub struct WeeklyOutcome {
    /// The report.
    pub report: WeeklyReport,
    /// Number of raised alerts that every configured receiver has got, now or earlier; 0 without
    /// receivers.
    pub delivered: u64,
    /// Delivery errors, one line each.
    pub faults: Vec<String>,
    /// Stored reports of other weeks for an index, newest first.
    pub others: Vec<WeeklyReport>,
}

impl SelfGrader {
    /// Returns the grades of sessions counted in `from..to`, with human corrections applied.
    pub async fn grades_between(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        self.grades_of(self.options.agent.as_deref(), from, to).await
    }

    async fn grades_of(
        &self,
        agent: Option<&str>,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<GradeRecord>, StoreError> {
        let grades = self.store.grades_between(from, to, agent).await?;
        let made = self.store.overrides().await?.items;
        Ok(grades.items.into_iter().map(|grade| apply_overrides(grade, &made)).collect())
    }

    async fn grades_of_last(&self, days: u32) -> Result<Vec<GradeRecord>, StoreError> {
        let now = selftest_clock::now();
        let span = SignedDuration::from_hours(24 * i64::from(days));
        let from = now.checked_sub(span).unwrap_or(Timestamp::MIN);
        let from = self.options.since.map_or(from, |since| since.max(from));
        // Tolerate sessions from a machine whose clock is slightly ahead.
        let to = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        self.grades_between(from, to).await
    }

    /// Finds patterns in the sessions of the last days.
    pub async fn identify_patterns(&self, days: u32) -> Result<GradePatterns, StoreError> {
        Ok(GradePatterns::from_records(&self.grades_of_last(days).await?))
    }

    /// Returns a text summary of the last days.
    pub async fn grades_summary(&self, days: u32) -> Result<String, StoreError> {
        let grades = self.grades_of_last(days).await?;
        let text = summary_text(
            days,
            &GradeSummary::from_records(&grades),
            &GradePatterns::from_records(&grades),
        );
        Ok(match self.store.undated_sessions().await? {
            0 => text,
            undated => {
                format!("{text}\n{} without a date not counted\n", plural(undated, "session"))
            }
        })
    }

    /// Returns the numbers of the last days.
    pub async fn grade_summary(&self, days: u32) -> Result<GradeSummary, StoreError> {
        Ok(GradeSummary::from_records(&self.grades_of_last(days).await?))
    }

    /// Returns the results per file for a scan, or for all files ever scanned.
    pub async fn coverage(&self, scan: Option<&ScanSummary>) -> Result<ScanCoverage, StoreError> {
        let stored = self.store.graded_sessions().await?;
        let undated = self.store.undated_sessions().await?;
        if let Some(scan) = scan {
            return Ok(ScanCoverage {
                scanned: true,
                found: scan.found,
                // The scan counts files that it failed to read among those that it read.
                read: scan.read - scan.unreadable,
                graded: scan.sessions,
                not_gradable: scan.not_gradable,
                unchanged: scan.unchanged,
                left_out: scan.found.saturating_sub(scan.unchanged + scan.read),
                unreadable: scan.unreadable,
                no_session: scan.no_session,
                duplicate: scan.duplicate,
                stored,
                undated,
            });
        }
        let files = self.store.files_by_outcome(Timestamp::MIN, Timestamp::MAX).await?;
        let count = |outcome| files.get(&outcome).copied().unwrap_or_default();
        let found = files.values().sum::<u64>();
        Ok(ScanCoverage {
            scanned: false,
            found,
            read: found - count(FileOutcome::Unreadable),
            graded: stored,
            not_gradable: count(FileOutcome::NotGradable),
            unchanged: 0,
            left_out: 0,
            unreadable: count(FileOutcome::Unreadable),
            no_session: count(FileOutcome::NoSession),
            duplicate: count(FileOutcome::Duplicate),
            stored,
            undated,
        })
    }

    /// Generates the report of a week, by default the current one. It is saved unless
    /// [`GraderOptions::agent`] is set, because stored reports cover all sessions.
    ///
    /// [`GraderOptions::agent`]: super::GraderOptions::agent
    pub async fn generate_weekly_report(
        &self,
        week: Option<Week>,
    ) -> Result<WeeklyReport, StoreError> {
        self.weekly_report(week, None).await
    }

    /// Generates the same report, with the coverage of the scan made for it.
    pub async fn weekly_report(
        &self,
        week: Option<Week>,
        scan: Option<&ScanSummary>,
    ) -> Result<WeeklyReport, StoreError> {
        let agent = self.options.agent.as_deref();
        let report = self.report_of(agent, week, scan).await?;
        // The table has one report per week; one of a single agent would replace it.
        if agent.is_none() {
            self.store_report(&report).await?;
        }
        Ok(report)
    }

    /// Generates and saves the report of all sessions of a week, regardless of [`GraderOptions::agent`],
    /// and sends new alerts to the configured receivers. `scan` is the one made for it.
    ///
    /// [`GraderOptions::agent`]: super::GraderOptions::agent
    pub async fn publish_weekly_report(
        &self,
        week: Option<Week>,
        scan: Option<&ScanSummary>,
    ) -> Result<WeeklyOutcome, StoreError> {
        let mut report = self.report_of(None, week, scan).await?;
        // Stored before the alerts go out: a delivery that crashes must not cost the report.
        self.store_report(&report).await?;
        let (delivered, faults) = self.send_alerts(&mut report).await?;
        let stored = self.store.weekly_reports(MAX_REPORTS).await?.items;
        let read = |old: &StoredReport| serde_json::from_str(&old.report_json).ok();
        let others = stored.iter().filter_map(read).collect();
        Ok(WeeklyOutcome { report, delivered, faults, others })
    }

    /// Sends each configured receiver the alerts that it has not got yet and records deliveries in
    /// the report. Failed ones are sent again with the next report. Returns the number of alerts
    /// delivered to all receivers, and the delivery errors.
    async fn send_alerts(
        &self,
        report: &mut WeeklyReport,
    ) -> Result<(u64, Vec<String>), StoreError> {
        let settings = &self.options.settings.alerts;
        let (command, webhook) = (settings.command.as_deref(), settings.webhook.as_deref());
        let receivers = receivers("alert", command, webhook, MAX_DELIVERY);
        let mut faults = Vec::new();
        let raised: Vec<Alert> = report.alerts.raised().cloned().collect();
        for receiver in &receivers {
            // Per receiver: if one of two failed, only that one is sent the alert again.
            let has = report.alerts.delivered_to.get(&receiver.key());
            let is_new = |alert: &&Alert| has.is_none_or(|has| !has.contains(&alert.metric));
            let alerts: Vec<&Alert> = raised.iter().filter(is_new).collect();
            if alerts.is_empty() {
                continue;
            }
            let week = report.week;
            let news = json!({ "kind": "selftest.alerts", "week": week, "alerts": alerts });
            match receiver.send(&news).await {
                Ok(()) => {
                    let metrics = alerts.iter().map(|alert| alert.metric);
                    report.alerts.delivered_to.entry(receiver.key()).or_default().extend(metrics);
                    // Saved at once, because alerts without a recorded delivery are sent again.
                    self.store_report(report).await?;
                }
                Err(error) => faults.push(error.to_string()),
            }
        }
        let has = |receiver: &HookReceiver<'_>, alert: &Alert| {
            let metrics = report.alerts.delivered_to.get(&receiver.key());
            metrics.is_some_and(|metrics| metrics.contains(&alert.metric))
        };
        let is_delivered = |alert: &&Alert| receivers.iter().all(|receiver| has(receiver, alert));
        let delivered = match receivers.len() {
            // `all` is true of no receivers, which would count as delivered.
            0 => 0,
            _ => raised.iter().filter(is_delivered).count(),
        };
        Ok((delivered as u64, faults))
    }

    /// Returns earlier weeks, oldest first, that have sessions but no report generated after their
    /// end. Only the weeks shown in report charts are checked.
    pub async fn missed_weeks(&self, before: Week) -> Result<Vec<Week>, StoreError> {
        let (end, _) = before.bounds();
        let span = SignedDuration::from_hours(24 * 7 * WEEKS_BEFORE);
        let from = end.checked_sub(span).unwrap_or(Timestamp::MIN);
        let grades = self.store.grades_between(from, end, None).await?.items;
        let weeks: BTreeSet<Week> =
            grades.iter().filter_map(GradeRecord::started_at).map(Week::containing).collect();
        let mut missed = Vec::new();
        for week in weeks {
            let stored = self.store.weekly_report(week.first_day()).await?;
            // A report made within its own week lacks the rest of it.
            if stored.is_none_or(|report| Week::containing(report.generated_at) <= week) {
                missed.push(week);
            }
        }
        Ok(missed)
    }

    /// Builds the report of the sessions of one agent, or of all.
    async fn report_of(
        &self,
        agent: Option<&str>,
        week: Option<Week>,
        scan: Option<&ScanSummary>,
    ) -> Result<WeeklyReport, StoreError> {
        let now = selftest_clock::now();
        let week = week.unwrap_or_else(|| Week::containing(now));
        let (start, end) = week.bounds();
        let span = SignedDuration::from_hours(24 * 7 * WEEKS_BEFORE);
        let from = start.checked_sub(span).unwrap_or(Timestamp::MIN);
        let records = self.grades_of(agent, from, end).await?;
        let coverage = self.coverage(scan).await?;
        let settings = &self.options.settings;
        let rules = ReportRules {
            suggestions: &settings.suggestions,
            alerts: &settings.alerts,
            prices: &self.options.prices,
        };
        let mut report = WeeklyReport::build(week, &records, coverage, rules, now);
        report.agent = agent.map(str::to_owned);
        // Keeps the record of deliveries, so that a regenerated report sends no alert twice.
        let earlier = self.store.weekly_report(report.week_start).await?;
        let earlier: Option<WeeklyReport> =
            earlier.and_then(|old| serde_json::from_str(&old.report_json).ok());
        report.alerts.delivered_to = earlier.map(|old| old.alerts.delivered_to).unwrap_or_default();
        Ok(report)
    }

    async fn store_report(&self, report: &WeeklyReport) -> Result<(), StoreError> {
        let stored = StoredReport {
            week_start: report.week_start,
            week_end: report.week_end,
            generated_at: report.generated_at,
            report_json: serde_json::to_string(report).unwrap_or_default(),
        };
        self.store.save_weekly_report(&stored).await
    }

    /// Compares the grades by rules, models and people.
    pub async fn calibration(&self) -> Result<GraderCalibration, StoreError> {
        let (grades, made, quality) = self.all_grades().await?;
        Ok(GraderCalibration::compare(&grades, &made, &quality, self.options.settings.discrepancy))
    }

    /// Measures the agreement of rule-based grades with people and with model graders.
    pub async fn agreement(&self) -> Result<GraderAgreement, StoreError> {
        let (grades, made, quality) = self.all_grades().await?;
        Ok(GraderAgreement::compare(&grades, &made, &quality, &self.options.settings.weights))
    }

    /// Returns all grades by rules, people and models, regardless of session time.
    async fn all_grades(
        &self,
    ) -> Result<(Vec<GradeRecord>, Vec<GradeOverride>, Vec<QualityGrade>), StoreError> {
        let agent = self.options.agent.as_deref();
        let grades = self.store.all_grades(agent).await?.items;
        let made = self.store.overrides().await?.items;
        Ok((grades, made, self.store.quality_grades().await?.items))
    }
}
