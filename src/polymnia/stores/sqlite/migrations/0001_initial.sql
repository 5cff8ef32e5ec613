-- Entities, observations, relations, the change log and the trigram index.
-- Deleted rows keep their place with a time in deleted_at; every index that a read uses leaves them out.

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    applied_at TEXT    NOT NULL
);

CREATE TABLE entities (
    id           INTEGER PRIMARY KEY,   -- order of creation, inside this file only
    uid          TEXT    NOT NULL,      -- the UUID others may keep
    name         TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    summary      TEXT,
    summary_at   INTEGER NOT NULL DEFAULT 0,
    tags         TEXT    NOT NULL DEFAULT '[]',
    next_ordinal INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,      -- microseconds since 1970, UTC
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER
);
CREATE UNIQUE INDEX entities_by_name ON entities (name) WHERE deleted_at IS NULL;

-- id = entity id * 2^24 + ordinal: an entity's observations lie side by side and need no second index.
CREATE TABLE observations (
    id         INTEGER PRIMARY KEY,
    content    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
);

-- Relations name their ends: an end may be a name that no entity has yet.
CREATE TABLE relations (
    id         INTEGER PRIMARY KEY,
    source     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX relations_by_key ON relations (source, target, type) WHERE deleted_at IS NULL;
CREATE INDEX relations_by_target ON relations (target) WHERE deleted_at IS NULL;

CREATE TABLE changes (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    at           INTEGER NOT NULL,
    actor        TEXT    NOT NULL,
    operation    TEXT    NOT NULL,
    before_state TEXT    NOT NULL,      -- JSON: entities, notes, relations
    after_state  TEXT    NOT NULL
);

-- Folded text of living rows, for substring search: rowid as in observations, ordinal 0 is "name \n type".
-- It holds no text and no positions, only which rows have a trigram: matches are checked against the rows.
CREATE VIRTUAL TABLE trigrams USING fts5 (
    content, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO trigrams (trigrams, rank) VALUES ('usermerge', 2);
CREATE VIRTUAL TABLE trigram_terms USING fts5vocab (trigrams, row);
