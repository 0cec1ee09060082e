-- Grades by models are read by the version of the rubric that the reader has, not by the highest
-- that a session has.

-- Grades by a prompt that a project had edited were kept as if by the built-in one, and cannot be
-- told apart by its text any more: they are of no rubric that is read.
UPDATE session_quality_grades SET rubric_version = 0
WHERE rubric_version = 1 AND details_json LIKE '%"prompt_edited":true%';

-- Of which version of the rubric the average in `quality` is; not null where a model has graded
-- the session by it, even where it could not tell.
ALTER TABLE session_grades ADD COLUMN quality_rubric INTEGER;
UPDATE session_grades SET quality_rubric = (
    SELECT MAX(rubric_version) FROM session_quality_grades AS grade
    WHERE grade.session_id = session_grades.session_id
);
UPDATE session_grades SET quality = (
    SELECT AVG(overall) FROM session_quality_grades AS grade
    WHERE grade.session_id = session_grades.session_id
    AND grade.rubric_version = session_grades.quality_rubric
);

-- The same columns and the new one: lists are read from here alone.
DROP INDEX idx_session_grades_browse;
CREATE INDEX idx_session_grades_browse ON session_grades(
    counts_at, session_id, agent, task_type, task_completed, quality, quality_rubric,
    total_errors, total_api_calls, tool_calls_efficient, response_quality, duration_seconds,
    model, task_summary
);

-- To find averages of other versions.
CREATE INDEX idx_session_grades_quality_rubric ON session_grades(quality_rubric)
WHERE quality_rubric IS NOT NULL;

-- In place of that without the version: the newest of one version are read one after the other.
DROP INDEX idx_sqg_ts;
CREATE INDEX idx_sqg_rubric_ts ON session_quality_grades(rubric_version, ts, id);
