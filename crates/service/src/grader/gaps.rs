//! Detects gaps in the agent's skills from recorded sessions and saves them
//! (docs/spec/skills-and-signals.md#gaps-and-proposals). `improve::detect` decides what a gap is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{GraderOptions, SelfGrader, SignalMessage, scan_signals};
use selftest_grading::improve::detect::{KnownRequest, RepeatedRequest, detect, has_reappeared};
use selftest_grading::improve::gap::{DetectedGap, GapKind, GapStatus, SkillGap};
use selftest_grading::improve::gap_settings::GapSettings;
use selftest_store::StoreError;

/// Maximum number of known gaps considered.
const MAX_GAPS: u64 = 10_000;

/// Result of gap detection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GapDetection {
    /// Number of graded sessions considered.
    pub sessions: u64,
    /// Number of graded sessions without a date, which are in no period and so not considered.
    pub undated: u64,
    /// Number of messages in which users repeated a request.
    pub repeated_requests: u64,
    /// Number of new gaps.
    pub new: u64,
    /// Number of closed gaps that were found again.
    pub reopened: u64,
    /// All gaps found, as they are stored now; those with the most sessions first.
    pub gaps: Vec<SkillGap>,
    /// Files and folders that could not be read, with the reason.
    pub problems: Vec<String>,
}

impl SelfGrader {
    /// Detects gaps in the sessions of the days before `now`, from their grades and their user
    /// messages, and saves them: one row per gap, however often it is found. Reads the session
    /// files again, so it may take long.
    pub async fn detect_gaps(
        &self,
        settings: &GapSettings,
        now: Timestamp,
    ) -> Result<GapDetection, StoreError> {
        let days = SignedDuration::from_hours(24 * i64::from(settings.lookback_days));
        let from = now.checked_sub(days).unwrap_or(Timestamp::MIN);
        // Tolerate sessions from a machine whose clock is slightly ahead.
        let to = now.checked_add(SignedDuration::from_hours(24)).unwrap_or(Timestamp::MAX);
        let records = self.grades_between(from, to).await?;
        let (requests, problems) = self.repeated_requests(from, to).await;
        let known = self.store.gaps(None, MAX_GAPS).await?.items;
        let known_requests: Vec<KnownRequest> = known
            .iter()
            .filter(|gap| gap.kind == GapKind::RepeatedRequest)
            .map(|gap| KnownRequest { key: gap.key.clone(), text: gap.subject.clone() })
            .collect();
        let found = detect(&records, &requests, &known_requests, settings);
        let known: BTreeMap<&str, &SkillGap> =
            known.iter().map(|gap| (gap.id.as_str(), gap)).collect();
        let reopened: Vec<String> = found
            .iter()
            .filter(|gap| {
                known.get(gap.id().as_str()).is_some_and(|known| {
                    known.status == GapStatus::Closed
                        && has_reappeared(gap, known.status_at, settings)
                })
            })
            .map(DetectedGap::id)
            .collect();
        let ids: BTreeSet<String> = found.iter().map(DetectedGap::id).collect();
        let new = ids.iter().filter(|id| !known.contains_key(id.as_str())).count() as u64;
        self.store.save_gaps(&found, &reopened, now).await?;
        let mut gaps = self.store.gaps(None, MAX_GAPS).await?.items;
        gaps.retain(|gap| ids.contains(&gap.id));
        Ok(GapDetection {
            sessions: records.len() as u64,
            undated: self.store.undated_sessions().await?,
            repeated_requests: requests.len() as u64,
            new,
            reopened: reopened.len() as u64,
            gaps,
            problems,
        })
    }

    /// Returns the messages in that period that repeat a request, and the read errors.
    async fn repeated_requests(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> (Vec<RepeatedRequest>, Vec<String>) {
        let since = self.options.since.map_or(from, |since| since.max(from));
        let options = GraderOptions { since: Some(since), ..self.options.clone() };
        let scan = tokio::task::spawn_blocking(move || scan_signals(&options)).await;
        let scan = match scan {
            Ok(scan) => scan,
            Err(panic) => return (Vec::new(), vec![format!("looking for signals: {panic}")]),
        };
        let repeated = scan.found.into_iter().filter(|one| one.signals.repetition == Some(true));
        let requests = repeated
            .filter_map(|one| {
                let at = one.time.or(one.session_date)?;
                let SignalMessage { session_id, event, text, .. } = one;
                Some(RepeatedRequest { session_id, event, at, text })
            })
            .filter(|one| since <= one.at && one.at < to);
        (requests.collect(), scan.problems)
    }
}
