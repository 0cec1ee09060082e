-- How well promoted skills work: seed 002, work item 1.

-- The seed presumes this table; the last three columns are the ones that it adds.
CREATE TABLE skill_versions (
    id TEXT PRIMARY KEY NOT NULL,
    user_id TEXT NOT NULL,
    skill_name TEXT NOT NULL,
    version TEXT NOT NULL,
    is_active SMALLINT NOT NULL,
    content TEXT,                  -- SKILL.md; null where it was only seen in use
    created_at TEXT NOT NULL,
    promoted_at TEXT,              -- when it was last put to use
    disabled_at TEXT,              -- null while it is active or superseded
    effectiveness_score DOUBLE PRECISION DEFAULT NULL,
    total_executions INTEGER DEFAULT 0,
    last_scored_at TEXT DEFAULT NULL,
    UNIQUE (user_id, skill_name, version)
);
CREATE UNIQUE INDEX idx_skill_versions_active ON skill_versions(user_id, skill_name)
    WHERE is_active <> 0;

-- Skill execution telemetry: one row per invocation of a promoted skill. Column for column the
-- seed's; a truth value is 0 or 1, as the driver of both databases has it.
CREATE TABLE skill_executions (
    id TEXT PRIMARY KEY NOT NULL,
    skill_version_id TEXT NOT NULL REFERENCES skill_versions(id) ON DELETE CASCADE,
    user_id TEXT NOT NULL,
    session_id TEXT,
    -- Outcome signals
    execution_status TEXT NOT NULL CHECK (execution_status IN ('success', 'error', 'timeout')),
    user_edited_output SMALLINT DEFAULT 0,        -- true if user significantly changed the result
    user_sent_thank_you SMALLINT DEFAULT 0,       -- true if next message was gratitude
    user_repeated_request SMALLINT DEFAULT 0,     -- true if user rephrased same ask
    conversation_turns INTEGER,                   -- how many turns this task took
    -- Metadata
    execution_time_ms INTEGER,
    error_message TEXT,
    created_at TEXT NOT NULL
);
CREATE INDEX idx_skill_executions_version ON skill_executions(skill_version_id, created_at DESC);
CREATE INDEX idx_skill_executions_user ON skill_executions(user_id, created_at DESC);
-- Not the seed's: every message of a user looks for the executions before it.
CREATE INDEX idx_skill_executions_session ON skill_executions(session_id, user_id);

-- What the user's next message said about an execution. Whether there was one says that a later
-- message is not the next one.
CREATE TABLE skill_signals (
    execution_id TEXT PRIMARY KEY NOT NULL REFERENCES skill_executions(id) ON DELETE CASCADE,
    made_at TEXT NOT NULL,
    gratitude SMALLINT NOT NULL,
    repetition SMALLINT,           -- null where the message before it is not known
    frustration SMALLINT NOT NULL  -- not in the score
);

-- What was done with versions, by whom and why. Rows are only added.
CREATE TABLE skill_audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    made_at TEXT NOT NULL,
    skill_version_id TEXT NOT NULL REFERENCES skill_versions(id) ON DELETE CASCADE,
    action TEXT NOT NULL,          -- promote, disable, auto_disable, rollback, refresh_failed
    reasons_json TEXT NOT NULL,    -- JSON array
    actor TEXT NOT NULL
);
CREATE INDEX idx_skill_audit_version ON skill_audit(skill_version_id);
