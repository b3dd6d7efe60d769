-- Claims name their holder by one text, which another store may form otherwise. Those of a running
-- program end with it.
DROP TABLE claims;

CREATE TABLE claims (
    problem INTEGER NOT NULL REFERENCES problems,
    schedule_hash TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (problem, schedule_hash)
) STRICT, WITHOUT ROWID;
