-- The tables of records. Texts compare by their bytes, as in SQLite. An index takes keys of at most 2.7 KB, so long texts
-- are in it by their digests.

CREATE TABLE version (
    -- Of the schema; one row.
    number BIGINT NOT NULL
);

-- Numbers of the processes that hold claims.
CREATE SEQUENCE holders AS INTEGER CYCLE;

CREATE TABLE pipelines (
    hash TEXT COLLATE "C" PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    -- A version, one byte, and the pipeline's JSON, compressed by Brotli.
    content BYTEA NOT NULL
);

CREATE TABLE problems (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pipeline TEXT COLLATE "C" NOT NULL REFERENCES pipelines,
    -- Boxes of inputs and outputs, and Params, as JSON.
    sizes TEXT COLLATE "C" NOT NULL,
    device TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    -- Those that machine code depends on.
    versions TEXT COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX problems_once ON problems (pipeline, md5(sizes), fingerprint, md5(versions));

CREATE TABLE trials (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    problem BIGINT NOT NULL REFERENCES problems,
    schedule_hash TEXT COLLATE "C" NOT NULL,
    schedule TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    message TEXT COLLATE "C" NOT NULL,
    verified BIGINT NOT NULL,
    predicted_us DOUBLE PRECISION,
    min_us DOUBLE PRECISION,
    median_us DOUBLE PRECISION,
    spread DOUBLE PRECISION NOT NULL,
    runs BIGINT,
    retimed_us DOUBLE PRECISION,
    -- The most that any kernel takes.
    registers BIGINT,
    spilled_bytes BIGINT,
    shared_bytes BIGINT,
    -- Each kernel, as JSON.
    kernels TEXT COLLATE "C" NOT NULL,
    compile_ms DOUBLE PRECISION NOT NULL,
    -- All versions, the driver's too, as JSON.
    versions TEXT COLLATE "C" NOT NULL,
    measured_at BIGINT NOT NULL,
    UNIQUE (problem, schedule_hash)
);

CREATE INDEX trials_by_time ON trials (problem, min_us) WHERE status = 'ok' AND min_us IS NOT NULL;

CREATE TABLE claims (
    problem BIGINT NOT NULL REFERENCES problems,
    schedule_hash TEXT COLLATE "C" NOT NULL,
    -- The number whose advisory lock its process holds for as long as it is connected.
    holder TEXT COLLATE "C" NOT NULL,
    -- In seconds since the Unix epoch, by the server's clock.
    expires BIGINT NOT NULL,
    PRIMARY KEY (problem, schedule_hash)
);

CREATE INDEX claims_of_holder ON claims (holder);

CREATE TABLE iterations (
    problem BIGINT NOT NULL REFERENCES problems,
    -- What the iterations of one run have in common.
    run TEXT COLLATE "C" NOT NULL,
    -- How many are finished; 0 when the run begins.
    finished BIGINT NOT NULL,
    -- The weights after the last, if any were trained.
    weights BYTEA,
    -- The problem's last trial then.
    last_trial BIGINT NOT NULL,
    finished_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX iterations_once ON iterations (problem, md5(run), finished);

CREATE TABLE steps (
    problem BIGINT NOT NULL REFERENCES problems,
    -- The strategy with its settings and seed, the space and the number of trials.
    run TEXT COLLATE "C" NOT NULL,
    -- From 0.
    step BIGINT NOT NULL,
    point TEXT COLLATE "C" NOT NULL,
    -- Not if the point is refused.
    schedule_hash TEXT COLLATE "C",
    outcome TEXT COLLATE "C" NOT NULL,
    trial BIGINT REFERENCES trials,
    -- What the strategy was told.
    time_us DOUBLE PRECISION,
    message TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL
);

CREATE UNIQUE INDEX steps_once ON steps (problem, md5(run), step);
CREATE INDEX steps_of_trial ON steps (trial);
