-- Patterns of many sessions are put together of tallies of days, which are kept here. What a tally
-- holds is decided by the program; here it is only noted that a day has changed.

-- How often the sessions of a day have changed. A day is the beginning of `counts_at`, in UTC.
CREATE TABLE pattern_days (
    day TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL
);

-- Apart from the days: a tally is large, and a day changes with each session.
CREATE TABLE pattern_tallies (
    day TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    changes BIGINT NOT NULL,  -- those of the day, when it was tallied
    version BIGINT NOT NULL,  -- of what is tallied, and how
    tally_json TEXT COLLATE "C" NOT NULL
);

INSERT INTO pattern_days (day, changes)
SELECT substr(counts_at, 1, 10), COUNT(*) FROM session_grades
WHERE counts_at IS NOT NULL GROUP BY substr(counts_at, 1, 10);

CREATE FUNCTION pattern_day_changed(counted TEXT) RETURNS void LANGUAGE sql AS $$
    INSERT INTO pattern_days (day, changes)
    SELECT substr(counted, 1, 10), 1 WHERE counted IS NOT NULL
    ON CONFLICT (day) DO UPDATE SET changes = pattern_days.changes + 1;
$$;

CREATE FUNCTION session_grades_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pattern_day_changed(old.counts_at);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM pattern_day_changed(new.counts_at);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER session_grades_added AFTER INSERT OR DELETE ON session_grades
    FOR EACH ROW EXECUTE FUNCTION session_grades_changed();
-- Not of what patterns do not show: averages of models are written far more often.
CREATE TRIGGER session_grades_changed AFTER UPDATE OF
    session_id, graded_at, task_completed, tool_calls_efficient, response_quality, session_start,
    task_summary, error_types, tools_with_errors, outcome, session_kind, task_type, counts_at,
    details_json
    ON session_grades FOR EACH ROW EXECUTE FUNCTION session_grades_changed();

-- A person's word counts in the tallies too.
CREATE FUNCTION grade_overrides_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM pattern_day_changed(counts_at) FROM session_grades
        WHERE session_id = old.session_id;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM pattern_day_changed(counts_at) FROM session_grades
        WHERE session_id = new.session_id;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER grade_overrides_changed AFTER INSERT OR UPDATE OR DELETE ON grade_overrides
    FOR EACH ROW EXECUTE FUNCTION grade_overrides_changed();
