//! What is known of each type of task: outcomes by evidence, the causes of failed calls, and
//! recommendations for weak types (docs/spec/session-grades.md#skill-recommendations): known skills,
//! open gaps and proposed skills.
//!
//! The evidence stands beside the specification's score ([`super::routing`]), which predicts success
//! no better than chance.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::gap::{GapStatus, ProposalStatus, SkillGap, SkillProposal};
use super::routing::{RoutingAdvice, RoutingSettings};
use crate::grade::{ErrorCause, GradeRecord, OutcomeShares, Proportion, TaskOutcome, TaskType};

/// Maximum number of causes of a task type.
const MAX_CAUSES: usize = 3;
/// Minimum number of tasks that meet a cause.
const MIN_TASKS: u64 = 2;

/// What was seen of one type of task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeEvidence {
    /// Task type.
    pub task_type: TaskType,
    /// Number of tasks.
    pub tasks: u64,
    /// Their outcomes.
    pub outcomes: OutcomeShares,
    /// Causes of failed calls that several of them met, most frequent first; at most 3.
    pub causes: Vec<TypeCause>,
}

/// A cause of failed calls within a task type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TypeCause {
    /// The cause.
    pub cause: ErrorCause,
    /// Share of the tasks that met it.
    pub tasks: Proportion,
    /// Advice for fixing it.
    pub advice: &'static str,
}

/// Counts the outcomes and causes of tasks by type.
#[derive(Debug, Default)]
pub struct EvidenceTally {
    types: BTreeMap<TaskType, TypeTally>,
}

#[derive(Debug, Default)]
struct TypeTally {
    tasks: u64,
    outcomes: BTreeMap<TaskOutcome, u64>,
    causes: BTreeMap<ErrorCause, u64>,
}

impl EvidenceTally {
    /// Adds a graded session, unless rates exclude it.
    pub fn add(&mut self, grade: &GradeRecord) {
        if !grade.is_task() {
            return;
        }
        let tally = self.types.entry(grade.details.task_type).or_default();
        tally.tasks += 1;
        *tally.outcomes.entry(grade.outcome).or_default() += 1;
        // A task counts once per cause, however often it met it.
        let met: BTreeSet<ErrorCause> =
            grade.details.errors.iter().map(|error| error.cause).collect();
        for cause in met {
            *tally.causes.entry(cause).or_default() += 1;
        }
    }

    /// Returns the types, those first of which most is known to have failed.
    pub fn finish(self) -> Vec<TypeEvidence> {
        let mut types: Vec<TypeEvidence> = self.types.into_iter().map(TypeTally::finish).collect();
        let failed = |one: &TypeEvidence| {
            // By the lower end of the interval: one failed task of one must not come before nine of
            // twelve.
            let least = one.outcomes.contradicted.interval.map_or(0.0, |interval| interval.low);
            let met = one.causes.first().and_then(|cause| cause.tasks.interval);
            (least, met.map_or(0.0, |interval| interval.low))
        };
        types.sort_by(|a, b| {
            let ((a_failed, a_met), (b_failed, b_met)) = (failed(a), failed(b));
            b_failed.total_cmp(&a_failed).then(b_met.total_cmp(&a_met))
        });
        types
    }
}

impl TypeTally {
    fn finish((task_type, tally): (TaskType, Self)) -> TypeEvidence {
        let Self { tasks, outcomes, causes } = tally;
        let count = |outcome| outcomes.get(&outcome).copied().unwrap_or_default();
        let mut causes: Vec<TypeCause> = causes
            .into_iter()
            .filter(|(_, met)| *met >= MIN_TASKS)
            .filter_map(|(cause, met)| {
                let tasks = Proportion::new(met, tasks);
                Some(TypeCause { cause, tasks, advice: cause.advice()? })
            })
            .collect();
        causes.sort_by_key(|cause| std::cmp::Reverse(cause.tasks.count));
        causes.truncate(MAX_CAUSES);
        let outcomes = OutcomeShares::from_counts(count, tasks);
        TypeEvidence { task_type, tasks, outcomes, causes }
    }
}

/// Maximum number of gaps and proposals listed per task type.
const MAX_NAMED: usize = 10;

/// Recommendation for one task type.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SkillRecommendation {
    /// Task type.
    #[schema(value_type = String)]
    pub task_type: TaskType,
    /// Score, which is below `routing.weak_score`.
    pub score: f64,
    /// Number of sessions.
    pub sessions: u64,
    /// Skills from `routing.skills` that are known to help.
    pub skills: Vec<String>,
    /// Gaps shown by its sessions that are neither closed nor dismissed; at most 10.
    pub gaps: Vec<GapReference>,
    /// Skills proposed or accepted for these gaps; at most 10.
    pub proposals: Vec<ProposalReference>,
}

/// Advice for all task types.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RoutingReport {
    /// Start of the days that scores cover.
    pub from: Timestamp,
    /// End of these days: the time of the request.
    pub to: Timestamp,
    /// Task types with sessions in these days or in the days before, lowest score first. A single
    /// type if the request asks for one.
    pub items: Vec<RoutingAdvice>,
    /// Recommendations for the weak task types.
    pub recommendations: Vec<SkillRecommendation>,
}

/// Reference to a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct GapReference {
    /// ID of the gap.
    pub id: String,
    /// One-sentence description.
    pub description: String,
    /// State of the gap.
    pub status: GapStatus,
}

/// Reference to a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProposalReference {
    /// ID of the proposal.
    pub id: String,
    /// Name of the skill.
    pub skill_name: String,
    /// Decision on the proposal.
    pub status: ProposalStatus,
}

/// Returns recommendations for the weak types among these, in the same order.
pub fn recommendations(
    advice: &[RoutingAdvice],
    gaps: &[SkillGap],
    proposals: &[SkillProposal],
    settings: &RoutingSettings,
) -> Vec<SkillRecommendation> {
    let weak = |advice: &RoutingAdvice| {
        let score = advice.score.filter(|score| *score < settings.weak_score)?;
        if advice.sessions < settings.min_sessions {
            return None;
        }
        let own: Vec<&SkillGap> =
            gaps.iter().filter(|gap| gap.task_types.contains(&advice.task_type)).collect();
        let is_live =
            |gap: &&&SkillGap| matches!(gap.status, GapStatus::Open | GapStatus::Proposed);
        let named = |gap: &&SkillGap| GapReference {
            id: gap.id.clone(),
            description: gap.description.clone(),
            status: gap.status,
        };
        // Of closed gaps too: their skill was accepted, and may be what helps.
        let proposed = proposals.iter().filter(|one| {
            one.status != ProposalStatus::Rejected && own.iter().any(|gap| gap.id == one.gap_id)
        });
        let skills = settings.skills.iter().filter(|known| known.task_type == advice.task_type);
        Some(SkillRecommendation {
            task_type: advice.task_type,
            score,
            sessions: advice.sessions,
            skills: skills.map(|known| known.skill.clone()).collect(),
            gaps: own.iter().filter(is_live).take(MAX_NAMED).map(named).collect(),
            proposals: proposed
                .take(MAX_NAMED)
                .map(|one| ProposalReference {
                    id: one.id.clone(),
                    skill_name: one.skill_name.clone(),
                    status: one.status,
                })
                .collect(),
        })
    };
    advice.iter().filter_map(weak).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::grade::fixture::record;
    use crate::grade::{ErrorCount, GradeRecord};
    use crate::improve::gap::GapKind;
    use crate::improve::routing::{ScoredSessions, advise};

    fn grades(of: TaskType, count: usize, outcome: TaskOutcome) -> Vec<GradeRecord> {
        let grade =
            |id: usize| GradeRecord { outcome, ..record(&format!("{of}{id}"), of, true, 5, 5) };
        (0..count).map(grade).collect()
    }

    fn with_error(mut grade: GradeRecord, cause: ErrorCause) -> GradeRecord {
        grade.details.errors = vec![ErrorCount {
            class: crate::grade::ErrorClass::Unknown,
            cause,
            template: String::new(),
            tool: "Edit".to_owned(),
            count: 7,
            first_event: 1,
            example: "no match".to_owned(),
        }];
        grade
    }

    #[test]
    fn what_failed_most_surely_comes_first() {
        let mut tally = EvidenceTally::default();
        let debugging = grades(TaskType::Debugging, 10, TaskOutcome::Contradicted);
        let one = grades(TaskType::Testing, 1, TaskOutcome::Contradicted);
        let passed = grades(TaskType::Documentation, 10, TaskOutcome::ChecksPassed);
        let research = grades(TaskType::Research, 4, TaskOutcome::Claimed);
        let research = research.into_iter().map(|one| with_error(one, ErrorCause::EditMismatch));
        let all = debugging.into_iter().chain(one).chain(passed).chain(research);
        all.for_each(|grade| tally.add(&grade));
        let types = tally.finish();
        let order: Vec<TaskType> = types.iter().map(|one| one.task_type).collect();
        assert_eq!(
            order,
            [TaskType::Debugging, TaskType::Testing, TaskType::Research, TaskType::Documentation]
        );
        assert_eq!(types[0].outcomes.contradicted.count, 10);
        let cause = &types[2].causes[0];
        assert_eq!((cause.cause, cause.tasks.count), (ErrorCause::EditMismatch, 4));
    }

    #[test]
    fn a_cause_of_one_task_is_left_out() {
        let mut tally = EvidenceTally::default();
        let grade = grades(TaskType::Testing, 1, TaskOutcome::Unknown).remove(0);
        tally.add(&with_error(grade, ErrorCause::EditMismatch));
        assert_eq!(tally.finish()[0].causes, []);
        assert!(EvidenceTally::default().finish().is_empty());
    }

    const NOW: &str = "2026-11-22T00:00:00Z";

    fn gap(id: &str, task_type: TaskType, status: GapStatus) -> SkillGap {
        SkillGap {
            id: id.to_owned(),
            kind: GapKind::LowTaskType,
            key: id.to_owned(),
            subject: String::new(),
            detail: None,
            description: format!("gap {id}"),
            status,
            status_at: Timestamp::UNIX_EPOCH,
            occurrences: 1,
            sessions: 1,
            weeks: 1,
            first_seen: Timestamp::UNIX_EPOCH,
            last_seen: Timestamp::UNIX_EPOCH,
            attempts: 0,
            last_fault: None,
            task_types: vec![task_type],
            evidence: Vec::new(),
        }
    }

    fn proposal(id: &str, gap_id: &str, status: ProposalStatus) -> SkillProposal {
        SkillProposal {
            id: id.to_owned(),
            gap_id: gap_id.to_owned(),
            skill_name: format!("skill-{id}"),
            description: String::new(),
            skill_md: String::new(),
            status,
            model: String::new(),
            prompt_digest: String::new(),
            experiment: None,
            created_at: Timestamp::UNIX_EPOCH,
            decided_at: None,
            reason: None,
            file: None,
        }
    }

    /// docs/spec/session-grades.md#skill-recommendations: a score below 3 recommends
    /// `systematic-debugging`.
    #[test]
    fn skills_gaps_and_proposals_for_a_weak_type() {
        let records: Vec<GradeRecord> = (0..6)
            .flat_map(|id| {
                [
                    record(&format!("d{id}"), TaskType::Debugging, false, 2, 2),
                    record(&format!("t{id}"), TaskType::Testing, true, 4, 4),
                ]
            })
            .collect();
        let settings = RoutingSettings::default();
        let scored = |record| ScoredSessions::from_grade(record, NOW.parse().unwrap(), &settings);
        let scored: Vec<ScoredSessions> = records.iter().filter_map(scored).collect();
        let advice = advise(&scored, None, &settings);
        let gaps = [
            gap("open", TaskType::Debugging, GapStatus::Open),
            gap("shut", TaskType::Debugging, GapStatus::Closed),
            gap("other", TaskType::Testing, GapStatus::Open),
        ];
        let proposals = [
            proposal("1", "open", ProposalStatus::Proposed),
            proposal("2", "shut", ProposalStatus::Accepted),
            proposal("3", "open", ProposalStatus::Rejected),
            proposal("4", "other", ProposalStatus::Proposed),
        ];
        let found = recommendations(&advice, &gaps, &proposals, &settings);
        assert_eq!(found.len(), 1, "testing is not weak");
        assert_eq!(found[0].skills, ["systematic-debugging"]);
        let ids: Vec<&str> = found[0].gaps.iter().map(|gap| gap.id.as_str()).collect();
        assert_eq!(ids, ["open"]);
        let ids: Vec<&str> = found[0].proposals.iter().map(|one| one.id.as_str()).collect();
        assert_eq!(ids, ["1", "2"]);
    }

    /// docs/spec/session-grades.md#skill-recommendations: a score of few sessions recommends
    /// nothing.
    #[test]
    fn few_sessions_recommend_nothing() {
        let records: Vec<GradeRecord> =
            (0..4).map(|id| record(&id.to_string(), TaskType::Debugging, false, 1, 1)).collect();
        let settings = RoutingSettings::default();
        let scored = |record| ScoredSessions::from_grade(record, NOW.parse().unwrap(), &settings);
        let scored: Vec<ScoredSessions> = records.iter().filter_map(scored).collect();
        let advice = advise(&scored, None, &settings);
        assert!(recommendations(&advice, &[], &[], &settings).is_empty());
    }
}
