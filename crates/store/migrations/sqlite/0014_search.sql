-- What was said and done in sessions, to be searched: filled from their files apart from grading.

-- Files whose sessions can be searched, as they were then.
CREATE TABLE indexed_files (
    path TEXT PRIMARY KEY NOT NULL,
    digest TEXT NOT NULL,
    graded BIGINT NOT NULL  -- sessions whose grade came from it
);

-- The numbers of a session's texts. They grow with the time at which a session counts, so that the
-- newest are found first and a span of time is a span of numbers.
CREATE TABLE session_transcripts (
    session_id TEXT PRIMARY KEY NOT NULL
        REFERENCES session_grades(session_id) ON DELETE CASCADE ON UPDATE CASCADE,
    path TEXT NOT NULL,
    first_id BIGINT NOT NULL UNIQUE,  -- of event 0
    last_id BIGINT NOT NULL
);
CREATE INDEX idx_session_transcripts_path ON session_transcripts(path);

-- Bounded texts of events, for people to read.
CREATE TABLE session_texts (
    id INTEGER PRIMARY KEY NOT NULL,
    text TEXT NOT NULL
);

-- Their words, made by us, so that both engines find the same: only letters and digits in lower
-- case with spaces between them. What other engines would call a token they need not know.
CREATE VIRTUAL TABLE session_words USING fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii'
);

CREATE TRIGGER session_transcripts_gone AFTER DELETE ON session_transcripts BEGIN
    DELETE FROM session_words WHERE rowid BETWEEN old.first_id AND old.last_id;
    DELETE FROM session_texts WHERE id BETWEEN old.first_id AND old.last_id;
END;
