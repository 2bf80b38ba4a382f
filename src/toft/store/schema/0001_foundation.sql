-- Facts about the state itself, such as the boot that its monotonic times belong to.
CREATE TABLE fact (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Append-only; seals are computed in ledger.py.
CREATE TABLE ledger (
    seq     INTEGER PRIMARY KEY,
    at      TEXT NOT NULL,
    kind    TEXT NOT NULL,
    subject TEXT NOT NULL,
    facts   TEXT NOT NULL,
    seal    TEXT NOT NULL
) STRICT;

CREATE INDEX ledger_subject ON ledger (subject, seq);

CREATE TRIGGER ledger_keeps_its_entries BEFORE UPDATE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

CREATE TRIGGER ledger_keeps_all_entries BEFORE DELETE ON ledger
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

-- A backend has a row from the moment that it is wished for until nothing of it is left.
CREATE TABLE backend (
    id           TEXT PRIMARY KEY,
    template_key TEXT NOT NULL,
    engine_id    TEXT NOT NULL,
    wish         TEXT NOT NULL CHECK (wish IN ('cloned', 'started', 'asleep', 'gone')),
    is_leased    INTEGER NOT NULL,
    http_port    INTEGER NOT NULL UNIQUE,
    db_port      INTEGER NOT NULL UNIQUE,
    uid          INTEGER UNIQUE,
    settings     TEXT NOT NULL,
    secrets      TEXT NOT NULL,
    is_cloned    INTEGER NOT NULL,
    is_primed    INTEGER NOT NULL,
    pid          INTEGER,
    pid_ticks    INTEGER,
    failure      TEXT,
    created_at   TEXT NOT NULL,
    created_mono REAL NOT NULL
) STRICT;

-- A backend serves one lease in its life, so the plain UNIQUE is the promise that no two leases share one.
-- Rows of ended leases stay for a while: they tell a late caller why.
CREATE TABLE lease (
    id                TEXT PRIMARY KEY,
    backend_id        TEXT NOT NULL UNIQUE,
    label             TEXT NOT NULL,
    project           TEXT,
    credential_digest TEXT NOT NULL,
    ttl_seconds       REAL NOT NULL,
    is_held           INTEGER NOT NULL,
    created_at        TEXT NOT NULL,
    expires_mono      REAL NOT NULL,
    template          TEXT NOT NULL,
    notices           TEXT NOT NULL,
    ended_at          TEXT,
    ended_reason      TEXT
) STRICT;

CREATE INDEX lease_live ON lease (id) WHERE ended_at IS NULL;
CREATE INDEX lease_ended ON lease (ended_at) WHERE ended_at IS NOT NULL;

-- What is known of a template beside its directory. A step that only serves others has no recipe.
CREATE TABLE template (
    key        TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    used_mono  REAL NOT NULL,
    recipe     TEXT
) STRICT;

-- Gateway workers that outlive a daemon.
CREATE TABLE worker (
    number    INTEGER PRIMARY KEY,
    pid       INTEGER NOT NULL,
    pid_ticks INTEGER NOT NULL
) STRICT;
