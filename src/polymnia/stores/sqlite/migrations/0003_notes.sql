-- Notes by key, their tags, vectors and words, and which sessions are in use by which running server.
-- The vault's notes have an empty session and an empty owner. A deleted note is gone; the change log remembers the vault's.

CREATE TABLE notes (
    id         INTEGER PRIMARY KEY,   -- order of creation
    owner      TEXT    NOT NULL,      -- the principal whose session it is
    session    TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    tags       TEXT    NOT NULL,      -- JSON array of strings
    created_at INTEGER NOT NULL,      -- microseconds since 1970, UTC
    updated_at INTEGER NOT NULL
);
CREATE UNIQUE INDEX notes_by_key ON notes (owner, session, key);
-- Finds a note by its whole content without a second copy of every content.
CREATE INDEX notes_by_content ON notes (owner, session, substr(content, 1, 40));

-- How many notes a scope has, kept by the triggers below: every search says it, and counting would read them all.
CREATE TABLE note_counts (
    owner   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (owner, session)
) WITHOUT ROWID;

CREATE TABLE note_tags (
    tag  TEXT    NOT NULL,
    note INTEGER NOT NULL,
    PRIMARY KEY (tag, note)
) WITHOUT ROWID;
CREATE INDEX note_tags_by_note ON note_tags (note);

-- Beside the notes and not in them, so that reading texts does not read vectors.
CREATE TABLE note_vectors (
    note   INTEGER PRIMARY KEY,
    vector BLOB    NOT NULL,          -- little-endian float32
    norm   REAL    NOT NULL           -- its Euclidean length
);

-- The words of the vault's notes; rowid is the note's. Those of a session are indexed for the search alone.
CREATE VIRTUAL TABLE vault_words USING fts5 (key, content, tags, content = '', contentless_delete = 1);

-- Who uses a session: a conversation (seat) on a running server, whose locked file beside this one says that it lives.
CREATE TABLE attendance (
    seat    TEXT    NOT NULL,
    owner   TEXT    NOT NULL,
    session TEXT    NOT NULL,
    server  TEXT    NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (seat, owner, session)
) WITHOUT ROWID;

CREATE TRIGGER note_created AFTER INSERT ON notes BEGIN
    INSERT INTO note_counts VALUES (new.owner, new.session, 1)
    ON CONFLICT (owner, session) DO UPDATE SET count = count + 1;
END;

CREATE TRIGGER note_deleted AFTER DELETE ON notes BEGIN
    DELETE FROM note_tags WHERE note = old.id;
    DELETE FROM note_vectors WHERE note = old.id;
    DELETE FROM note_counts WHERE owner = old.owner AND session = old.session AND count = 1;
    UPDATE note_counts SET count = count - 1 WHERE owner = old.owner AND session = old.session;
END;

CREATE TRIGGER vault_note_deleted AFTER DELETE ON notes WHEN old.session = '' BEGIN
    DELETE FROM vault_words WHERE rowid = old.id;
END;
