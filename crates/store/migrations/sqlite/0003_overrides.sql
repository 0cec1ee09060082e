-- People's grades beside those of the rules (seed 000 §13.2). Rows are only added.

CREATE TABLE grade_overrides (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    field TEXT NOT NULL,
    rule_value SMALLINT NOT NULL,
    human_value SMALLINT NOT NULL,
    reason TEXT NOT NULL,
    made_at TEXT NOT NULL
);

CREATE INDEX idx_grade_overrides_session ON grade_overrides(session_id);
