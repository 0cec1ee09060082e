-- Patterns of many sessions are put together of tallies of days, which are kept here. What a tally
-- holds is decided by the program; here it is only noted that a day has changed.

-- How often the sessions of a day have changed. A day is the beginning of `counts_at`, in UTC.
CREATE TABLE pattern_days (
    day TEXT NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL
);

-- Apart from the days: a tally is large, and a day changes with each session.
CREATE TABLE pattern_tallies (
    day TEXT NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL,  -- those of the day, when it was tallied
    version BIGINT NOT NULL,  -- of what is tallied, and how
    tally_json TEXT NOT NULL
);

INSERT INTO pattern_days (day, changes)
SELECT substr(counts_at, 1, 10), COUNT(*) FROM session_grades
WHERE counts_at IS NOT NULL GROUP BY substr(counts_at, 1, 10);

-- Whoever replaces a row deletes the one before it, and no trigger is told.
CREATE TRIGGER session_grades_replaced BEFORE INSERT ON session_grades BEGIN
    INSERT INTO pattern_days (day, changes)
    SELECT substr(counts_at, 1, 10), 1 FROM session_grades
    WHERE session_id = new.session_id AND counts_at IS NOT NULL
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER session_grades_added AFTER INSERT ON session_grades
WHEN new.counts_at IS NOT NULL BEGIN
    INSERT INTO pattern_days (day, changes) VALUES (substr(new.counts_at, 1, 10), 1)
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
-- Not of what patterns do not show: averages of models are written far more often.
CREATE TRIGGER session_grades_changed AFTER UPDATE OF
    session_id, graded_at, task_completed, tool_calls_efficient, response_quality, session_start,
    task_summary, error_types, tools_with_errors, outcome, session_kind, task_type, counts_at,
    details_json
ON session_grades BEGIN
    INSERT INTO pattern_days (day, changes)
    SELECT substr(old.counts_at, 1, 10), 1 WHERE old.counts_at IS NOT NULL
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
    INSERT INTO pattern_days (day, changes)
    SELECT substr(new.counts_at, 1, 10), 1
    WHERE new.counts_at IS NOT NULL AND new.counts_at IS NOT old.counts_at
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER session_grades_gone AFTER DELETE ON session_grades
WHEN old.counts_at IS NOT NULL BEGIN
    INSERT INTO pattern_days (day, changes) VALUES (substr(old.counts_at, 1, 10), 1)
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;

-- A person's word counts in the tallies too.
CREATE TRIGGER grade_overrides_added AFTER INSERT ON grade_overrides BEGIN
    INSERT INTO pattern_days (day, changes)
    SELECT substr(counts_at, 1, 10), 1 FROM session_grades
    WHERE session_id = new.session_id AND counts_at IS NOT NULL
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER grade_overrides_changed AFTER UPDATE ON grade_overrides BEGIN
    INSERT INTO pattern_days (day, changes)
    SELECT substr(counts_at, 1, 10), COUNT(*) FROM session_grades
    WHERE session_id IN (old.session_id, new.session_id) AND counts_at IS NOT NULL
    GROUP BY substr(counts_at, 1, 10)
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER grade_overrides_gone AFTER DELETE ON grade_overrides BEGIN
    INSERT INTO pattern_days (day, changes)
    SELECT substr(counts_at, 1, 10), 1 FROM session_grades
    WHERE session_id = old.session_id AND counts_at IS NOT NULL
    ON CONFLICT (day) DO UPDATE SET changes = changes + 1;
END;
