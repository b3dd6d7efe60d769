-- The tables of a farm: who works, what is to be tuned, and what is to be measured. Times are in seconds since the Unix epoch,
-- by the server's clock.

-- Processes that work for the farm.
CREATE TABLE workers (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- The number whose advisory lock it holds for as long as it is connected.
    holder TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    process BIGINT NOT NULL,
    -- Of `propose`, `compile` and `run`, with commas between them.
    roles TEXT COLLATE "C" NOT NULL,
    -- The digest of its program, and the versions that machine code depends on.
    program TEXT COLLATE "C" NOT NULL,
    -- Of its GPUs, which are of one kind; NULL if it runs nothing.
    fingerprint TEXT COLLATE "C",
    -- Their description, as JSON.
    device TEXT COLLATE "C",
    gpus BIGINT NOT NULL,
    joined_at DOUBLE PRECISION NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL,
    -- Whether it was asked to leave.
    leaving BOOLEAN NOT NULL DEFAULT FALSE,
    -- NULL until it has left in an orderly way.
    left_at DOUBLE PRECISION,
    -- Candidates that it has compiled and run.
    compiled BIGINT NOT NULL DEFAULT 0,
    ran BIGINT NOT NULL DEFAULT 0,
    -- Those among them that failed, of either kind.
    failed BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX workers_of_holder ON workers (holder);

-- What is to be tuned.
CREATE TABLE runs (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Of the pipeline.
    name TEXT COLLATE "C" NOT NULL,
    -- What to do, as JSON that only the program reads.
    task TEXT COLLATE "C" NOT NULL,
    -- One of `waiting`, `active`, `finished`, `failed` and `stopped`.
    state TEXT COLLATE "C" NOT NULL,
    -- The number of the process that proposes candidates; it counts only for as long as its advisory lock is held.
    holder TEXT COLLATE "C",
    -- How many processes have proposed so far. What a process writes for the run counts only under its own number.
    epoch BIGINT NOT NULL DEFAULT 0,
    -- What it is tuned for, as JSON; NULL until a GPU is known.
    device TEXT COLLATE "C",
    -- NULL until the first process has proposed.
    problem BIGINT REFERENCES problems,
    -- The last trial of the problem before the run.
    before BIGINT NOT NULL DEFAULT 0,
    -- How many trials it will take, as far as is known.
    expected BIGINT NOT NULL DEFAULT 0,
    -- By which factor the time is expected to shrink with the next trial, as a natural logarithm.
    gain DOUBLE PRECISION NOT NULL DEFAULT 0,
    -- Its share of the GPUs, of 1, and how far it has used that.
    share DOUBLE PRECISION NOT NULL DEFAULT 1,
    used DOUBLE PRECISION NOT NULL DEFAULT 0,
    -- What it came to, or why it failed.
    message TEXT COLLATE "C" NOT NULL DEFAULT '',
    asked_at DOUBLE PRECISION NOT NULL,
    began_at DOUBLE PRECISION,
    ended_at DOUBLE PRECISION
);

CREATE INDEX runs_of_problem ON runs (problem);
CREATE INDEX runs_of_state ON runs (state);

-- What is to be measured: schedules, until they have trials, and the final rounds of problems.
CREATE TABLE candidates (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run BIGINT NOT NULL REFERENCES runs,
    problem BIGINT NOT NULL REFERENCES problems,
    -- `trial` or `finals`.
    kind TEXT COLLATE "C" NOT NULL,
    schedule_hash TEXT COLLATE "C" NOT NULL,
    schedule TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    predicted_us DOUBLE PRECISION,
    -- How it is measured, as JSON.
    options TEXT COLLATE "C" NOT NULL,
    -- Of the device that it is for.
    fingerprint TEXT COLLATE "C" NOT NULL,
    -- One of `queued`, `compiling`, `compiled` and `running`; final rounds are `done` until their run has read what came of
    -- them, which is in place of the schedule then.
    state TEXT COLLATE "C" NOT NULL,
    -- The number of the process that works on it, as in `workers`.
    holder TEXT COLLATE "C",
    -- How often it was taken. What a process writes for it counts only under its own number.
    claim BIGINT NOT NULL DEFAULT 0,
    -- NULL until the work itself has begun.
    started_at DOUBLE PRECISION,
    -- How often its process crashed, and how often that of its whole worker ended.
    losses BIGINT NOT NULL DEFAULT 0,
    vanished BIGINT NOT NULL DEFAULT 0,
    -- What was compiled, without machine code.
    built BYTEA,
    UNIQUE (problem, kind, schedule_hash)
);

CREATE INDEX candidates_to_take ON candidates (state, run, id);
CREATE INDEX candidates_of_run ON candidates (run);
CREATE INDEX candidates_of_holder ON candidates (holder);

-- Machine code by its digest, and which candidates need it. A crash of the server empties both.
CREATE UNLOGGED TABLE code (
    hash TEXT COLLATE "C" PRIMARY KEY,
    content BYTEA NOT NULL
);

CREATE UNLOGGED TABLE code_of_candidates (
    candidate BIGINT NOT NULL REFERENCES candidates ON DELETE CASCADE,
    hash TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (candidate, hash)
);

CREATE INDEX code_uses ON code_of_candidates (hash);

-- How fast GPUs are: the time of a problem's default schedule on each of them.
CREATE TABLE paces (
    problem BIGINT NOT NULL REFERENCES problems,
    worker BIGINT NOT NULL REFERENCES workers,
    gpu BIGINT NOT NULL,
    default_us DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (problem, worker, gpu)
);

CREATE INDEX paces_of_worker ON paces (worker);

-- Which worker has recorded which trial.
CREATE TABLE measured (
    trial BIGINT PRIMARY KEY REFERENCES trials,
    worker BIGINT NOT NULL REFERENCES workers,
    at DOUBLE PRECISION NOT NULL,
    -- By what its times were multiplied, because its GPU is slower or faster than most.
    factor DOUBLE PRECISION NOT NULL
);

CREATE INDEX measured_by_worker ON measured (worker, at);

-- What people should know.
CREATE TABLE notes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    run BIGINT REFERENCES runs,
    worker BIGINT REFERENCES workers,
    note TEXT COLLATE "C" NOT NULL
);

CREATE INDEX notes_of_run ON notes (run);
CREATE INDEX notes_of_worker ON notes (worker);
