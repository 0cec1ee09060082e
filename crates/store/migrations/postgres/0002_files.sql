-- What became of each file that may hold sessions, so that an unchanged one is not read again.

CREATE TABLE session_files (
    path TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    size BIGINT NOT NULL,         -- bytes; -1: to be read again
    modified_ns BIGINT NOT NULL,  -- nanoseconds since 1970
    digest TEXT COLLATE "C" NOT NULL,      -- of the content, hexadecimal
    scanned_at TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,     -- graded, not_gradable, no_session, unreadable, duplicate
    reason TEXT COLLATE "C",
    format TEXT COLLATE "C",
    sessions BIGINT NOT NULL,
    graded BIGINT NOT NULL,
    notes_json TEXT COLLATE "C"
);
