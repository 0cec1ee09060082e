-- Gaps in the agent's skills, and skills that are proposed for them: seed 002, work item 2.

-- One row for each gap, however often it is found. The id is made of kind and subject.
CREATE TABLE skill_gaps (
    id TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,            -- tool_error, unknown_tool, low_task_type, repeated_request
    gap_key TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT,
    description TEXT NOT NULL,
    status TEXT NOT NULL,          -- open, proposed, closed, dismissed
    status_at TEXT NOT NULL,
    occurrences BIGINT NOT NULL,
    sessions BIGINT NOT NULL,
    weeks BIGINT NOT NULL,         -- calendar weeks in which it was found
    last_week TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,  -- drafts that failed
    last_fault TEXT,
    task_types_json TEXT NOT NULL,
    evidence_json TEXT NOT NULL
);
CREATE INDEX idx_skill_gaps_status ON skill_gaps(status, sessions);

-- Never promoted by themselves: people accept or reject them.
CREATE TABLE skill_proposals (
    id TEXT PRIMARY KEY NOT NULL,
    gap_id TEXT NOT NULL REFERENCES skill_gaps(id) ON DELETE CASCADE,
    skill_name TEXT NOT NULL,
    description TEXT NOT NULL,
    skill_md TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('proposed', 'accepted', 'rejected')),
    model TEXT NOT NULL,
    prompt_digest TEXT NOT NULL,
    experiment_json TEXT,
    created_at TEXT NOT NULL,
    decided_at TEXT,
    reason TEXT,
    file TEXT                      -- where the accepted skill was written
);
CREATE INDEX idx_skill_proposals_gap ON skill_proposals(gap_id);
CREATE INDEX idx_skill_proposals_created ON skill_proposals(created_at);
