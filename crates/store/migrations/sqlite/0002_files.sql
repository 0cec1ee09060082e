-- What became of each file that may hold sessions, so that an unchanged one is not read again.

CREATE TABLE session_files (
    path TEXT PRIMARY KEY NOT NULL,
    size BIGINT NOT NULL,         -- bytes; -1: to be read again
    modified_ns BIGINT NOT NULL,  -- nanoseconds since 1970
    digest TEXT NOT NULL,         -- SHA-256 of the content, hexadecimal
    scanned_at TEXT NOT NULL,
    outcome TEXT NOT NULL,        -- graded, not_gradable, no_session, unreadable, duplicate
    reason TEXT,
    format TEXT,
    sessions BIGINT NOT NULL,
    graded BIGINT NOT NULL,
    notes_json TEXT
);
