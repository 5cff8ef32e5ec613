-- The vault's notes among the passages that a search finds. In `words`, `trigrams`, `vectors`, `vectors_gone` and
-- `unembedded` a note's row has the negative of its id, so that notes and observations share one ranking. Those of a
-- session are in none of them: nobody but the session may see them, not even in how common a word is.

INSERT INTO words (rowid, name, entity_type, content, parts)
SELECT -id, key, NULL, content, derived_words(key || ' ' || content) FROM notes WHERE session = '' ORDER BY -id;

INSERT INTO trigrams (rowid, content)
SELECT -id, padded_text(key, content) FROM notes WHERE session = '' ORDER BY -id;

INSERT OR IGNORE INTO unembedded (model, observation)
SELECT m.id, -n.id FROM notes AS n CROSS JOIN models AS m WHERE n.session = '';

-- Deleted notes of the vault whose texts the change log still has, and when they were deleted; a key may be several times.
CREATE TABLE notes_gone (
    key        TEXT    NOT NULL,
    deleted_at INTEGER NOT NULL,
    PRIMARY KEY (key, deleted_at)
) WITHOUT ROWID;
CREATE INDEX notes_gone_by_time ON notes_gone (deleted_at);

-- A note that is only before a change was deleted by it. Of a session's note the log has no text.
INSERT OR IGNORE INTO notes_gone (key, deleted_at)
SELECT gone.value ->> 'key', c.at FROM changes AS c, json_each(c.before_state, '$.notes') AS gone
WHERE gone.value ->> '$.scope.session' IS NULL AND NOT EXISTS (
    SELECT 1 FROM json_each(c.after_state, '$.notes') AS stays
    WHERE stays.value ->> 'key' = gone.value ->> 'key' AND stays.value ->> '$.scope.session' IS NULL
);

-- A row for each purge: after it the change log no longer tells of everything that went.
CREATE TABLE purges (
    id     INTEGER PRIMARY KEY AUTOINCREMENT,
    cutoff INTEGER NOT NULL   -- what was deleted before that time went
);

-- Which vectors of a model went is listed for a while only: those up to this number of `vectors_gone` no longer are.
ALTER TABLE models ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER vault_note_added AFTER INSERT ON notes WHEN new.session = ''
BEGIN
    INSERT OR IGNORE INTO unembedded (model, observation) SELECT id, -new.id FROM models;
END;

CREATE TRIGGER vault_note_changed AFTER UPDATE OF content ON notes
WHEN new.session = '' AND old.content IS NOT new.content
BEGIN
    DELETE FROM vectors WHERE observation = -new.id;
    INSERT OR IGNORE INTO unembedded (model, observation) SELECT id, -new.id FROM models;
END;

CREATE TRIGGER vault_note_forgotten AFTER DELETE ON notes WHEN old.session = ''
BEGIN
    DELETE FROM unindexed WHERE id = -old.id;
    DELETE FROM words WHERE rowid = -old.id;
    DELETE FROM trigrams WHERE rowid = -old.id;
    DELETE FROM vectors WHERE observation = -old.id;
    DELETE FROM unembedded WHERE observation = -old.id AND model IN (SELECT id FROM models);
END;
