-- Whether the tasks of sessions truly succeeded, as people and files say: the newest word of each.
-- A label may come before its session has a grade.
CREATE TABLE session_labels (
    session_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    success SMALLINT NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C",
    note TEXT COLLATE "C",
    labelled_at TEXT COLLATE "C" NOT NULL
);
