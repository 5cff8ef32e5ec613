-- Vectors of observations, and what is still to be embedded.

CREATE TABLE models (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    identity  TEXT    NOT NULL UNIQUE,   -- model, dimension and prompts: vectors of others cannot be compared
    url       TEXT    NOT NULL,          -- how to load it again
    dimension INTEGER NOT NULL
);

CREATE TABLE vectors (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,   -- order of writing: other processes read on from the last they saw
    observation INTEGER NOT NULL,
    model       INTEGER NOT NULL,
    vector      BLOB    NOT NULL                     -- half-precision floats, little endian, length one
);
CREATE UNIQUE INDEX vectors_of ON vectors (observation, model);

-- Vectors that are gone, for the processes that hold them in memory.
CREATE TABLE vectors_gone (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    observation INTEGER NOT NULL,
    model       INTEGER NOT NULL
);

-- What each model still has to embed. Written with the observation, so nothing can be lost; a store that was never
-- asked by meaning has no models and pays nothing.
CREATE TABLE unembedded (
    model       INTEGER NOT NULL,
    observation INTEGER NOT NULL,
    PRIMARY KEY (model, observation)
) WITHOUT ROWID;

CREATE TRIGGER observations_added AFTER INSERT ON observations
BEGIN
    INSERT OR IGNORE INTO unembedded (model, observation) SELECT id, new.id FROM models;
END;

-- A vector lives as long as the text it was made from.
CREATE TRIGGER observations_changed AFTER UPDATE OF content, deleted_at ON observations
WHEN old.content IS NOT new.content OR old.deleted_at IS NOT new.deleted_at
BEGIN
    DELETE FROM vectors WHERE observation = old.id;
    INSERT OR IGNORE INTO unembedded (model, observation) SELECT id, new.id FROM models WHERE new.deleted_at IS NULL;
END;
CREATE TRIGGER vectors_deleted AFTER DELETE ON vectors
BEGIN
    INSERT INTO vectors_gone (observation, model) VALUES (old.observation, old.model);
END;
