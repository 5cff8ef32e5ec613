"""A data directory as the earlier project server writes it: its registry and its project files."""

from pathlib import Path

import apsw

REGISTRY = """
PRAGMA journal_mode = WAL;
CREATE TABLE projects (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    description TEXT DEFAULT '',
    db_path     TEXT NOT NULL,
    status      TEXT NOT NULL DEFAULT 'active' CHECK(status IN ('active', 'archived')),
    created_at  TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at  TEXT NOT NULL DEFAULT (datetime('now'))
);
CREATE INDEX idx_projects_status ON projects(status);
CREATE INDEX idx_projects_name ON projects(name);
"""

PROJECT = """
PRAGMA journal_mode = WAL;
CREATE TABLE entities (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    entity_type TEXT NOT NULL,
    created_at  TEXT NOT NULL DEFAULT (datetime('now')),
    updated_at  TEXT NOT NULL DEFAULT (datetime('now')),
    deleted_at  TEXT NULL
);
CREATE TABLE observations (
    id          TEXT PRIMARY KEY,
    entity_id   TEXT NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    content     TEXT NOT NULL,
    created_at  TEXT NOT NULL DEFAULT (datetime('now')),
    deleted_at  TEXT NULL
);
CREATE TABLE relations (
    id              TEXT PRIMARY KEY,
    from_entity     TEXT NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    to_entity       TEXT NOT NULL REFERENCES entities(id) ON DELETE CASCADE,
    relation_type   TEXT NOT NULL,
    created_at      TEXT NOT NULL DEFAULT (datetime('now')),
    deleted_at      TEXT NULL
);
CREATE VIRTUAL TABLE entities_fts USING fts5(name, entity_type, content='entities', content_rowid='rowid');
CREATE VIRTUAL TABLE observations_fts USING fts5(content, content='observations', content_rowid='rowid');
CREATE TRIGGER entities_ai AFTER INSERT ON entities BEGIN
    INSERT INTO entities_fts(rowid, name, entity_type) VALUES (new.rowid, new.name, new.entity_type);
END;
CREATE TRIGGER observations_ai AFTER INSERT ON observations BEGIN
    INSERT INTO observations_fts(rowid, content) VALUES (new.rowid, new.content);
END;
CREATE INDEX idx_entities_active ON entities(name, entity_type) WHERE deleted_at IS NULL;
"""

ROWS = """
INSERT INTO entities VALUES
    ('e1', 'Alice', 'person', '2024-01-02 03:04:05', '2024-02-02 03:04:05', NULL),
    ('e2', 'Go', 'technology', '2024-01-02 03:04:06', '2024-01-02 03:04:06', NULL),
    ('e3', 'Bob', 'person', '2024-01-02 03:04:07', '2024-01-02 03:04:07', '2024-03-01 00:00:00'),
    ('e4', 'Bob', 'person', '2024-03-02 00:00:00', '2024-03-02 00:00:00', NULL),
    ('e5', 'Go', 'language', '2024-04-01 00:00:00', '2024-04-01 00:00:00', NULL);
INSERT INTO observations VALUES
    ('o1', 'e1', 'likes tea', '2024-01-02 03:04:05', NULL),
    ('o2', 'e1', 'likes coffee', '2024-01-03 00:00:00', '2024-02-02 03:04:05'),
    ('o3', 'e1', 'writes Go', '2024-01-04 00:00:00', NULL),
    ('o4', 'e3', 'the old Bob', '2024-01-02 03:04:07', '2024-03-01 00:00:00'),
    ('o5', 'e4', 'the new Bob', '2024-03-02 00:00:00', NULL),
    ('o6', 'e5', 'has channels', '2024-04-01 00:00:00', NULL);
INSERT INTO relations VALUES
    ('r1', 'e1', 'e2', 'uses', '2024-01-05 00:00:00', NULL),
    ('r2', 'e1', 'e3', 'knows', '2024-01-06 00:00:00', '2024-03-01 00:00:00'),
    ('r3', 'e1', 'e4', 'knows', '2024-03-03 00:00:00', NULL),
    ('r4', 'e1', 'e5', 'uses', '2024-04-02 00:00:00', NULL);
"""


def earlier_directory(directory: Path) -> None:
    """Create the projects `work` and `done`; `done` is archived.

    Their last writes are still in the WAL.
    """
    (directory / "projects").mkdir(parents=True)
    (directory / "archive").mkdir()
    _write(directory / "_meta.db", REGISTRY)
    registry = apsw.Connection(str(directory / "_meta.db"))
    registry.execute(
        "INSERT INTO projects VALUES ('p1', 'work', 'at work', 'projects/p1.db', 'active', '2024-01-01 00:00:00', "
        "'2024-01-01 00:00:00'), ('p2', 'done', '', 'archive/p2.db', 'archived', '2024-01-01 00:00:00', "
        "'2024-01-01 00:00:00')"
    )
    registry.close()
    _write(directory / "projects" / "p1.db", PROJECT, ROWS)
    _write(directory / "archive" / "p2.db", PROJECT, ROWS)


def _write(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
