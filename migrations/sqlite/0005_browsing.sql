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

CREATE INDEX idx_session_grades_quality ON session_grades(quality);
CREATE INDEX idx_sqg_ts ON session_quality_grades(ts, id);
