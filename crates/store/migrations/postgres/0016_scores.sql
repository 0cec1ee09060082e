-- Sessions in the order in which advice counts them, so that they are counted from here alone, and
-- the agents are the first entries of each.
CREATE INDEX idx_session_grades_scores ON session_grades(
    agent, task_type, task_completed, tool_calls_efficient, response_quality, counts_at,
    session_kind, session_id
);
