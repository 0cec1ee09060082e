-- Reflections of agents and their scores: seed 004. Weak reflections are rows of reflection_scores
-- with weak = 1.

CREATE TABLE reflections (
    id INTEGER PRIMARY KEY,       -- in the order of submission, over all projects
    project_id TEXT NOT NULL,
    reflection_id TEXT NOT NULL,
    agent TEXT,
    loop_count BIGINT NOT NULL,
    made_at TEXT NOT NULL,        -- by the agent, else when it was submitted
    document_json TEXT NOT NULL,  -- what was submitted
    UNIQUE (project_id, reflection_id)
);
CREATE INDEX idx_reflections_project ON reflections(project_id, id);

CREATE TABLE reflection_scores (
    reflection BIGINT PRIMARY KEY NOT NULL REFERENCES reflections(id),
    score DOUBLE PRECISION NOT NULL,      -- [0, 1]
    threshold DOUBLE PRECISION NOT NULL,  -- that was in force
    weak SMALLINT NOT NULL,
    issues_json TEXT NOT NULL,
    graded_at TEXT NOT NULL,
    told_at TEXT                          -- when the recovery hook was given it
);
CREATE INDEX idx_reflection_scores_weak ON reflection_scores(weak, reflection);
