-- The registry of a data directory. `projects` has the columns that earlier programs gave it, so theirs is used as it is.

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    applied_at TEXT    NOT NULL
);

CREATE TABLE IF NOT EXISTS projects (
    id          TEXT PRIMARY KEY,                -- UUID, also the name of the file
    name        TEXT NOT NULL UNIQUE,
    description TEXT DEFAULT '',
    db_path     TEXT NOT NULL,                   -- relative to the directory: projects/{id}.db or archive/{id}.db
    status      TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
    created_at  TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at  TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX IF NOT EXISTS idx_projects_status ON projects (status);

-- Changes to a workspace's file that were begun and not finished.
CREATE TABLE intents (
    project   TEXT PRIMARY KEY,
    operation TEXT NOT NULL CHECK (operation IN ('create', 'archive', 'restore', 'delete'))
);
