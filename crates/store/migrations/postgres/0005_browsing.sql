-- For lists that are sorted and paged by the database.

-- Average overall score of the grades by models, by the latest version of the rubric. Kept up to
-- date when a grade by a model is saved; null where there is none.
ALTER TABLE session_grades ADD COLUMN quality DOUBLE PRECISION;
UPDATE session_grades SET quality = (
    SELECT AVG(overall) FROM session_quality_grades AS grade
    WHERE grade.session_id = session_grades.session_id AND grade.rubric_version = (
        SELECT MAX(rubric_version) FROM session_quality_grades AS newest
        WHERE newest.session_id = session_grades.session_id
    )
);

-- Only the order of time, unlike in SQLite: the long columns of a row are kept apart from it, so
-- that any other order is a pass over short rows, and a summary is too long for an index.
CREATE INDEX idx_session_grades_browse ON session_grades(counts_at, session_id);
DROP INDEX idx_session_grades_counts_at;  -- the same beginning
CREATE INDEX idx_sqg_ts ON session_quality_grades(ts, id);
