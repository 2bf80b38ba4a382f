-- What a backend's directory was last made from when it is not its template, what shall take its place, and
-- how often something did.
ALTER TABLE backend ADD COLUMN snapshot TEXT;
ALTER TABLE backend ADD COLUMN swap TEXT;
ALTER TABLE backend ADD COLUMN edition INTEGER NOT NULL DEFAULT 0;

-- Copies of a running backend that a lease can return to. They go with their lease.
CREATE TABLE snapshot (
    id         TEXT PRIMARY KEY,
    lease_id   TEXT NOT NULL,
    name       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    pause_ms   REAL NOT NULL,
    UNIQUE (lease_id, name)
) STRICT;
