-- What was said and done in sessions, to be searched: filled from their files apart from grading.

-- Files whose sessions can be searched, as they were then.
CREATE TABLE indexed_files (
    path TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    graded BIGINT NOT NULL  -- sessions whose grade came from it
);

-- The numbers of a session's texts. They grow with the time at which a session counts, so that the
-- newest are found first and a span of time is a span of numbers.
CREATE TABLE session_transcripts (
    session_id TEXT COLLATE "C" PRIMARY KEY NOT NULL
        REFERENCES session_grades(session_id) ON DELETE CASCADE ON UPDATE CASCADE,
    path TEXT COLLATE "C" NOT NULL,
    first_id BIGINT NOT NULL UNIQUE,  -- of event 0
    last_id BIGINT NOT NULL
);
CREATE INDEX idx_session_transcripts_path ON session_transcripts(path);

-- Bounded texts of events, for people to read.
CREATE TABLE session_texts (
    id BIGINT PRIMARY KEY NOT NULL,
    text TEXT COLLATE "C" NOT NULL
);

-- Their words, made by us, so that both engines find the same: only letters and digits in lower
-- case with spaces between them. What other engines would call a token they need not know.
CREATE TABLE session_words (
    id BIGINT PRIMARY KEY NOT NULL,
    words TSVECTOR NOT NULL
);
CREATE INDEX idx_session_words ON session_words USING GIN (words);

CREATE FUNCTION session_transcripts_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM session_words WHERE id BETWEEN old.first_id AND old.last_id;
    DELETE FROM session_texts WHERE id BETWEEN old.first_id AND old.last_id;
    RETURN NULL;
END $$;
CREATE TRIGGER session_transcripts_gone AFTER DELETE ON session_transcripts
    FOR EACH ROW EXECUTE FUNCTION session_transcripts_gone();
