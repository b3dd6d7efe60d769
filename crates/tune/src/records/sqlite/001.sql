CREATE TABLE pipelines (
    hash TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    -- A version, one byte, and the pipeline's JSON, compressed by Brotli.
    content BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE problems (
    id INTEGER PRIMARY KEY,
    pipeline TEXT NOT NULL REFERENCES pipelines,
    -- Boxes of inputs and outputs, and Params, as JSON.
    sizes TEXT NOT NULL,
    device TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    -- Those that machine code depends on.
    versions TEXT NOT NULL,
    UNIQUE (pipeline, sizes, fingerprint, versions)
) STRICT;

CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    problem INTEGER NOT NULL REFERENCES problems,
    schedule_hash TEXT NOT NULL,
    schedule TEXT NOT NULL,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    message TEXT NOT NULL,
    verified INTEGER NOT NULL,
    predicted_us REAL,
    min_us REAL,
    median_us REAL,
    spread REAL NOT NULL,
    runs INTEGER,
    retimed_us REAL,
    -- The most that any kernel takes.
    registers INTEGER,
    spilled_bytes INTEGER,
    shared_bytes INTEGER,
    -- Each kernel, as JSON.
    kernels TEXT NOT NULL,
    compile_ms REAL NOT NULL,
    -- All versions, the driver's too, as JSON.
    versions TEXT NOT NULL,
    measured_at INTEGER NOT NULL,
    UNIQUE (problem, schedule_hash)
) STRICT;

CREATE TABLE claims (
    problem INTEGER NOT NULL REFERENCES problems,
    schedule_hash TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (problem, schedule_hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE iterations (
    problem INTEGER NOT NULL REFERENCES problems,
    -- What the iterations of one run have in common.
    run TEXT NOT NULL,
    -- How many are finished; 0 when the run begins.
    finished INTEGER NOT NULL,
    -- The weights after the last, if any were trained.
    weights BLOB,
    -- The problem's last trial then.
    last_trial INTEGER NOT NULL,
    finished_at INTEGER NOT NULL,
    PRIMARY KEY (problem, run, finished)
) STRICT, WITHOUT ROWID;
