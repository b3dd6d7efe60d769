-- The steps of runs of strategies.
CREATE TABLE steps (
    problem INTEGER NOT NULL REFERENCES problems,
    -- The strategy with its settings and seed, the space and the number of trials.
    run TEXT NOT NULL,
    -- From 0.
    step INTEGER NOT NULL,
    point TEXT NOT NULL,
    -- Not if the point is refused.
    schedule_hash TEXT,
    outcome TEXT NOT NULL,
    trial INTEGER REFERENCES trials,
    -- What the strategy was told.
    time_us REAL,
    message TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (problem, run, step)
) STRICT, WITHOUT ROWID;
