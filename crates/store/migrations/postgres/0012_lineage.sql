-- How a session begins, so that different runs of one id are told apart, and one that goes on where
-- another ended is found.

-- The id that its file gives it: `session_id`, unless another run has that.
ALTER TABLE session_grades ADD COLUMN claimed_id TEXT COLLATE "C";
-- Digest of the first request and the first answer.
ALTER TABLE session_grades ADD COLUMN beginning TEXT COLLATE "C";
-- Further digests, as JSON.
ALTER TABLE session_grades ADD COLUMN lineage TEXT COLLATE "C";

CREATE INDEX idx_session_grades_claimed ON session_grades(claimed_id) WHERE claimed_id IS NOT NULL;
CREATE INDEX idx_session_grades_beginning ON session_grades(beginning) WHERE beginning IS NOT NULL;

-- Each file is read again once: which of two counts was decided by the id alone.
UPDATE session_files SET rules = NULL;
