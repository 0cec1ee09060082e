-- What became of a session's task, by more than appearances: verified, contradicted, claimed or
-- unknown; null in rows of other programs and of earlier versions.
ALTER TABLE session_grades ADD COLUMN outcome TEXT;

-- Whether it is a person's task, or a subagent, a warm-up or an automatic run, which no rate
-- counts; null is a task.
ALTER TABLE session_grades ADD COLUMN session_kind TEXT;

-- The session that it was started by or goes on from, where its file says so.
ALTER TABLE session_grades ADD COLUMN parent_session TEXT;
CREATE INDEX idx_session_grades_parent ON session_grades(parent_session)
WHERE parent_session IS NOT NULL;

-- The same columns and the new ones: lists are read from here alone.
DROP INDEX idx_session_grades_browse;
CREATE INDEX idx_session_grades_browse ON session_grades(
    counts_at, session_id, agent, task_type, task_completed, quality, quality_rubric,
    total_errors, total_api_calls, tool_calls_efficient, response_quality, duration_seconds,
    model, outcome, session_kind, task_summary
);
