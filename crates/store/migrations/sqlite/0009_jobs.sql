-- Runs of the scheduled jobs (seed 002), and which worker may run them now. The queue of gradings
-- has tables of its own, which its library makes.

CREATE TABLE job_runs (
    job TEXT NOT NULL,         -- such as run_weekly_digest
    slot TEXT NOT NULL,        -- the time that it was due, or asked for
    worker TEXT NOT NULL,      -- which worker ran it, or runs it
    attempt INTEGER NOT NULL,  -- more than 1: earlier workers died in the middle
    started_at TEXT NOT NULL,
    ended_at TEXT,             -- null while it runs, and after its worker died
    status TEXT,               -- completed, failed, skipped
    summary_json TEXT,
    PRIMARY KEY (job, slot)
);

-- A worker holds the row of that name until it gives it back, or is silent for too long.
CREATE TABLE job_leases (
    name TEXT PRIMARY KEY NOT NULL,
    holder TEXT NOT NULL,
    seen BIGINT NOT NULL       -- its last sign of life, by the clock of the database: seconds since 1970
);
