//! Recommendations for weak task types (docs/spec/session-grades.md#skill-recommendations): known
//! skills, open gaps and proposed skills.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::gap::{GapStatus, SkillGap};
use super::proposal::{ProposalStatus, SkillProposal};
use super::routing::{RoutingAdvice, RoutingSettings};
use crate::grade::TaskType;

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
    use crate::grade::GradeRecord;
    use crate::grade::fixture::record;
    use crate::improve::gap::GapKind;
    use crate::improve::routing::{ScoredSessions, advise};

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
