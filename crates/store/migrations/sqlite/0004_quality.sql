-- Grades by a language model: seed 003.

CREATE TABLE session_quality_grades (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    grader_model TEXT NOT NULL,       -- which model graded (e.g. 'qwen2.5-coder:7b')
    rubric_version INTEGER NOT NULL,  -- bump when the rubric changes
    ts TEXT NOT NULL,
    problem_solved REAL,              -- [0, 1] or NULL if "can't tell"
    tests_added REAL,
    code_clean REAL,
    edge_cases REAL,
    overall REAL,                     -- weighted average; weights in details
    reasoning TEXT,                   -- ~200-char summary
    details_json TEXT,                -- per-rubric notes
    UNIQUE (session_id, grader_model, rubric_version)
);
CREATE INDEX idx_sqg_session ON session_quality_grades(session_id);
CREATE INDEX idx_sqg_overall ON session_quality_grades(overall DESC);
