-- Gaps in the agent's skills, and skills that are proposed for them: seed 002, work item 2.

-- One row for each gap, however often it is found. The id is made of kind and subject.
CREATE TABLE skill_gaps (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,            -- tool_error, unknown_tool, low_task_type, repeated_request
    gap_key TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C",
    description TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,          -- open, proposed, closed, dismissed
    status_at TEXT COLLATE "C" NOT NULL,
    occurrences BIGINT NOT NULL,
    sessions BIGINT NOT NULL,
    weeks BIGINT NOT NULL,         -- calendar weeks in which it was found
    last_week TEXT COLLATE "C" NOT NULL,
    first_seen TEXT COLLATE "C" NOT NULL,
    last_seen TEXT COLLATE "C" NOT NULL,
    attempts BIGINT NOT NULL DEFAULT 0,  -- drafts that failed
    last_fault TEXT COLLATE "C",
    task_types_json TEXT COLLATE "C" NOT NULL,
    evidence_json TEXT COLLATE "C" NOT NULL
);
CREATE INDEX idx_skill_gaps_status ON skill_gaps(status, sessions);

-- Never promoted by themselves: people accept or reject them.
CREATE TABLE skill_proposals (
    id TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    gap_id TEXT COLLATE "C" NOT NULL REFERENCES skill_gaps(id) ON DELETE CASCADE,
    skill_name TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    skill_md TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL CHECK (status IN ('proposed', 'accepted', 'rejected')),
    model TEXT COLLATE "C" NOT NULL,
    prompt_digest TEXT COLLATE "C" NOT NULL,
    experiment_json TEXT COLLATE "C",
    created_at TEXT COLLATE "C" NOT NULL,
    decided_at TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    file TEXT COLLATE "C"                      -- where the accepted skill was written
);
CREATE INDEX idx_skill_proposals_gap ON skill_proposals(gap_id);
CREATE INDEX idx_skill_proposals_created ON skill_proposals(created_at);
