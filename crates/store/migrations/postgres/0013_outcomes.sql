-- What became of a session's task, by more than appearances: verified, contradicted, claimed or
-- unknown; null in rows of other programs and of earlier versions.
ALTER TABLE session_grades ADD COLUMN outcome TEXT COLLATE "C";

-- Whether it is a person's task, or a subagent, a warm-up or an automatic run, which no rate
-- counts; null is a task.
ALTER TABLE session_grades ADD COLUMN session_kind TEXT COLLATE "C";

-- The session that it was started by or goes on from, where its file says so.
ALTER TABLE session_grades ADD COLUMN parent_session TEXT COLLATE "C";
CREATE INDEX idx_session_grades_parent ON session_grades(parent_session)
WHERE parent_session IS NOT NULL;
