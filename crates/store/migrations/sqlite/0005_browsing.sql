-- For lists that are sorted and paged by the database.

-- Average overall score of the grades by models, by the latest version of the rubric. Kept up to
-- date when a grade by a model is saved; null where there is none.
ALTER TABLE session_grades ADD COLUMN quality REAL;
UPDATE session_grades SET quality = (
    SELECT AVG(overall) FROM session_quality_grades AS grade
    WHERE grade.session_id = session_grades.session_id AND grade.rubric_version = (
        SELECT MAX(rubric_version) FROM session_quality_grades AS newest
        WHERE newest.session_id = session_grades.session_id
    )
);

-- Everything that lists show, so that they are read from here in any order and with any filter:
-- the rows themselves are large, and one index for each order would slow down grading.
CREATE INDEX idx_session_grades_browse ON session_grades(
    counts_at, session_id, agent, task_type, task_completed, quality, total_errors,
    total_api_calls, tool_calls_efficient, response_quality, duration_seconds, model, task_summary
);
DROP INDEX idx_session_grades_counts_at;  -- the same beginning
CREATE INDEX idx_sqg_ts ON session_quality_grades(ts, id);
