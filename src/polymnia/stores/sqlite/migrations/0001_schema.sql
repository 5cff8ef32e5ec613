-- Rows are versions: `since` is the change that created a row, `until` the change that ended it (NULL: it lives).
-- Every row id of cards, observations, relations and notes comes from one counter, in commit order, so the ids of
-- cards, observations and notes are one space of passage ids. A passage's text never changes under its id.
-- Times are microseconds since 1970, UTC.

-- One row, which every commit renews: "PLYL", the schema cookie (4 bytes), the token before and the token of this commit (8
-- random bytes each). It must stay the first table, on page 2, where log.py finds it without SQLite.
CREATE TABLE lineage (
    state BLOB NOT NULL
);
INSERT INTO lineage (state) VALUES (CAST('PLYL' || zeroblob(12) || randomblob(8) AS BLOB));

CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    applied_at TEXT    NOT NULL
);

CREATE TABLE actors (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,           -- the client and the token it used
    server TEXT NOT NULL,           -- the process that made the change
    UNIQUE (name, server)
);

-- One row per write. The rows it created have the ids after its predecessor's last_row, up to its own.
CREATE TABLE changes (
    id        INTEGER PRIMARY KEY,  -- 1, 2, 3 … in commit order
    at        INTEGER NOT NULL,     -- later than that of every change before
    actor     INTEGER NOT NULL REFERENCES actors,
    operation TEXT    NOT NULL,
    last_row  INTEGER NOT NULL
);
CREATE INDEX changes_by_time ON changes (at);

-- Points of the history that have a name, such as that of the last consolidation report.
CREATE TABLE marks (
    name   TEXT    PRIMARY KEY,
    change INTEGER NOT NULL,        -- the last change before it
    at     INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per purge: rows that ended at or before this change are gone.
CREATE TABLE purges (
    change INTEGER PRIMARY KEY
);

-- The identity of an entity, and the counters that are not versioned.
CREATE TABLE entities (
    id           INTEGER PRIMARY KEY,  -- the row id of its first card: entities in order of creation
    uid          NOT NULL UNIQUE,      -- a UUID as 16 bytes, or any other text as it is
    next_ordinal INTEGER NOT NULL,     -- kept because ordinals are never reused, not even after a purge
    updated_at   INTEGER NOT NULL,
    touched      INTEGER NOT NULL      -- the last change to it or to its observations
);
CREATE INDEX entities_by_time ON entities (updated_at);

-- When an entity counted as updated by a change, where the rows of that change do not tell: it came with a time of its own
-- (from a restore or an import), it was only touched, or a purge removed the rows. Other changes update at their own time.
CREATE TABLE updates (
    entity INTEGER NOT NULL REFERENCES entities,
    change INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (entity, change)
) WITHOUT ROWID;

-- What is known of the entity itself.
CREATE TABLE cards (
    id         INTEGER PRIMARY KEY,
    entity     INTEGER NOT NULL REFERENCES entities,
    name       TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    summary    TEXT,
    summary_at INTEGER,
    tags       TEXT,                   -- a JSON array; NULL: none
    created_at INTEGER NOT NULL,       -- when the entity was created
    since      INTEGER NOT NULL,
    until      INTEGER
);
CREATE UNIQUE INDEX cards_living ON cards (name)  WHERE until IS NULL;
CREATE INDEX cards_past          ON cards (name)  WHERE until IS NOT NULL;
CREATE INDEX cards_of            ON cards (entity);
CREATE INDEX cards_ended         ON cards (until) WHERE until IS NOT NULL;

CREATE TABLE observations (
    id         INTEGER PRIMARY KEY,
    entity     INTEGER NOT NULL REFERENCES entities,
    ordinal    INTEGER NOT NULL,
    text       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    valid_at   INTEGER,                -- NULL: when it was created
    source     TEXT,                   -- the conversation or document it comes from; NULL: unknown
    since      INTEGER NOT NULL,
    until      INTEGER
);
CREATE UNIQUE INDEX observations_living ON observations (entity, ordinal) WHERE until IS NULL;
CREATE INDEX observations_past          ON observations (entity, ordinal) WHERE until IS NOT NULL;
CREATE INDEX observations_ended         ON observations (until)           WHERE until IS NOT NULL;
-- Observations by the time they tell of.
CREATE INDEX observations_by_time       ON observations (coalesce(valid_at, created_at)) WHERE until IS NULL;
-- Observations of one source in the order they were written.
CREATE INDEX observations_by_source     ON observations (source)                         WHERE source IS NOT NULL AND until IS NULL;

-- Relations name their ends as text: an end may be a name that no entity has yet.
CREATE TABLE relations (
    id         INTEGER PRIMARY KEY,
    source     TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    type       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    until      INTEGER
);
CREATE UNIQUE INDEX relations_living  ON relations (source, target, type) WHERE until IS NULL;
CREATE INDEX relations_by_target      ON relations (target)               WHERE until IS NULL;
CREATE INDEX relations_past           ON relations (source)               WHERE until IS NOT NULL;
CREATE INDEX relations_past_by_target ON relations (target)               WHERE until IS NOT NULL;
CREATE INDEX relations_ended          ON relations (until)                WHERE until IS NOT NULL;

-- The vault's notes.
CREATE TABLE notes (
    id         INTEGER PRIMARY KEY,
    key        TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    tags       TEXT,                   -- a JSON array; NULL: none
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    since      INTEGER NOT NULL,
    until      INTEGER
);
CREATE UNIQUE INDEX notes_living ON notes (key)                 WHERE until IS NULL;
CREATE INDEX notes_past          ON notes (key)                 WHERE until IS NOT NULL;
CREATE INDEX notes_ended         ON notes (until)               WHERE until IS NOT NULL;
-- Finds a note by its whole text without a second copy of every text.
CREATE INDEX notes_by_text       ON notes (substr(text, 1, 40)) WHERE until IS NULL;

-- The tags of living vault notes.
CREATE TABLE note_tags (
    tag  TEXT    NOT NULL,
    note INTEGER NOT NULL,
    PRIMARY KEY (tag, note)
) WITHOUT ROWID;

-- Notes of sessions are private to the session and vanish with it: no versions, no index, no history.
CREATE TABLE session_notes (
    id         INTEGER PRIMARY KEY,
    owner      TEXT    NOT NULL,       -- the principal whose session it is
    session    TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    tags       TEXT,
    embedding  BLOB,                   -- little-endian float32; NULL: none
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (owner, session, key)
);

-- Which conversation uses which session, on which running server.
CREATE TABLE session_members (
    member  TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    server  TEXT    NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (member, owner, session)
) WITHOUT ROWID;

-- Stemmed words of living passages; rowid is the passage id. A card has name, labels (type and tags) and content (summary), an
-- observation content, a note name (key), labels (tags) and content. `parts` holds what is derived from the others (the
-- parts of getUserName, pairs of Chinese characters), apart from them so that phrases match where they stand.
CREATE VIRTUAL TABLE words USING fts5 (
    name, labels, content, parts,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('usermerge', 2);
-- How many bytes a transaction gathers before it writes a segment: with the default of 1 MiB, imports merge more segments.
INSERT INTO words (words, rank) VALUES ('hashsize', 8388608);
CREATE VIRTUAL TABLE word_terms USING fts5vocab (words, row);

-- Trigrams of the folded text of living passages, for substring search: a card's name and type, an observation's text, a
-- note's key and text. It stores no text and no positions; matches are verified against the rows.
CREATE VIRTUAL TABLE trigrams USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
INSERT INTO trigrams (trigrams, rank) VALUES ('usermerge', 2);
INSERT INTO trigrams (trigrams, rank) VALUES ('hashsize', 8388608);
CREATE VIRTUAL TABLE trigram_terms USING fts5vocab (trigrams, row);

CREATE TABLE models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    identity  TEXT    NOT NULL UNIQUE,  -- model, dimension and prompts: vectors of others cannot be compared
    url       TEXT    NOT NULL,         -- how to load it again; 'client': the clients bring their own vectors
    dimension INTEGER NOT NULL
);

-- How passages become the texts that are embedded. A template that no perspective has any more loses its vectors.
CREATE TABLE templates (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    template TEXT NOT NULL UNIQUE
);
INSERT INTO templates (id, template) VALUES (1, '{text}');

CREATE TABLE perspectives (
    id       INTEGER PRIMARY KEY,
    name     TEXT    NOT NULL UNIQUE,
    template INTEGER NOT NULL REFERENCES templates,
    query    TEXT    NOT NULL           -- how a question becomes the text that is embedded
);
INSERT INTO perspectives (id, name, template, query) VALUES (1, 'text', 1, '{query}');

-- Ids are in order of writing: a process that holds vectors in memory reads on from the last one it saw.
CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    passage  INTEGER NOT NULL,
    template INTEGER NOT NULL REFERENCES templates,
    model    INTEGER NOT NULL REFERENCES models,
    vector   BLOB    NOT NULL           -- little-endian: float16 of length one, or a client's float32 as it came
);
CREATE UNIQUE INDEX vectors_of ON vectors (passage, template, model);

-- Background work that one server does at a time.
CREATE TABLE leases (
    name       TEXT    PRIMARY KEY,
    server     TEXT    NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;
