-- Whether the tasks of sessions truly succeeded, as people and files say: the newest word of each.
-- A label may come before its session has a grade.
CREATE TABLE session_labels (
    session_id TEXT NOT NULL PRIMARY KEY,
    success SMALLINT NOT NULL,
    source TEXT NOT NULL,
    task TEXT,
    note TEXT,
    labelled_at TEXT NOT NULL
);
