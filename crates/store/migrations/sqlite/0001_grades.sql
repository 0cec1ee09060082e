-- Grades by rules and weekly reports: seed 000 §6, column for column. A database that the seed's
-- own program made is taken over as it is.

CREATE TABLE IF NOT EXISTS session_grades (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT UNIQUE NOT NULL,
    session_file TEXT NOT NULL,
    graded_at TEXT NOT NULL,

    -- Core metrics
    task_completed INTEGER NOT NULL,
    tool_calls_efficient INTEGER NOT NULL,
    response_quality INTEGER NOT NULL,
    errors_recovered INTEGER NOT NULL,
    total_api_calls INTEGER NOT NULL,

    -- Metadata
    model TEXT,
    platform TEXT,
    session_start TEXT,
    duration_seconds REAL,
    task_summary TEXT,

    -- Error analysis
    total_errors INTEGER NOT NULL,
    error_types TEXT,  -- JSON array
    tools_with_errors TEXT,  -- JSON array

    -- Pattern flags
    had_repeated_errors INTEGER NOT NULL,
    had_infinite_loop_risk INTEGER NOT NULL,
    had_user_clarification INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS weekly_reports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    week_start TEXT UNIQUE NOT NULL,
    week_end TEXT NOT NULL,
    generated_at TEXT NOT NULL,
    report_json TEXT NOT NULL  -- Serialized WeeklyReport
);

-- Nullable, so that the seed's program can go on inserting.
ALTER TABLE session_grades ADD COLUMN agent TEXT;
ALTER TABLE session_grades ADD COLUMN task_type TEXT;
ALTER TABLE session_grades ADD COLUMN counts_at TEXT;
ALTER TABLE session_grades ADD COLUMN messages BIGINT;
ALTER TABLE session_grades ADD COLUMN details_json TEXT;

CREATE INDEX idx_session_grades_counts_at ON session_grades(counts_at);
CREATE INDEX idx_session_grades_file ON session_grades(session_file);
