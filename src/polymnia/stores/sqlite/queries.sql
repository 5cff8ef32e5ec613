-- fragment: entity_columns
-- What `unpack_entity` takes.
e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at,
c.aliases, c.due, c.status, c.expires

-- fragment: observation_columns
-- The entity, and what `unpack_fact` takes.
o.entity, o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author

-- name: existing_names
-- Which of the names (a JSON array) are taken. CROSS JOIN, here and below, makes the planner start from what is wanted.
SELECT c.name FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL;

-- name: entity_ids
-- The identities behind names (a JSON array), and their living cards, to change them.
SELECT c.name, c.entity, c.id FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL;

-- name: entities_by_uid
-- The identities with these ids (JSON arrays of texts and of UUIDs in hexadecimal) and, while they live, their names: a
-- restored entity gets its own identity back.
SELECT e.uid, e.id, (SELECT c.name FROM cards AS c WHERE c.entity = e.id AND c.until IS NULL)
FROM json_each(?1) AS wanted CROSS JOIN entities AS e ON e.uid = wanted.value
UNION ALL
SELECT e.uid, e.id, (SELECT c.name FROM cards AS c WHERE c.entity = e.id AND c.until IS NULL)
FROM json_each(?2) AS wanted CROSS JOIN entities AS e ON e.uid = unhex(wanted.value);

-- name: entity_named
-- One entity by name: the most frequent read. Its living card comes last.
SELECT {entity_columns}, c.id
FROM cards AS c CROSS JOIN entities AS e ON e.id = c.entity WHERE c.name = ? AND c.until IS NULL;

-- name: entities_named
-- The entities with these names (a JSON array), oldest first. Their living cards come last.
SELECT {entity_columns}, c.id
FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL
CROSS JOIN entities AS e ON e.id = c.entity ORDER BY e.id;

-- name: entities_by_id
-- The entities with these row ids (a JSON array), oldest first.
SELECT {entity_columns}
FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
CROSS JOIN cards AS c ON c.entity = e.id AND c.until IS NULL ORDER BY e.id;

-- name: entities_all
-- Every living entity, oldest first. NOT INDEXED, here and below, because a scan of a partial index looks up every row.
SELECT {entity_columns}
FROM cards AS c NOT INDEXED CROSS JOIN entities AS e ON e.id = c.entity WHERE c.until IS NULL ORDER BY e.id;

-- name: entities_page
-- A page of the entities, oldest first; NULL means no limit.
SELECT {entity_columns}
FROM entities AS e CROSS JOIN cards AS c ON c.entity = e.id AND c.until IS NULL
ORDER BY e.id LIMIT coalesce(?1, -1) OFFSET ?2;

-- name: entities_typed
-- A page of the entities of a type, oldest first; NULL means no limit.
SELECT {entity_columns}
FROM cards AS c INDEXED BY cards_by_type CROSS JOIN entities AS e ON e.id = c.entity
WHERE c.type = ?1 AND c.until IS NULL ORDER BY c.entity LIMIT coalesce(?2, -1) OFFSET ?3;

-- name: outlines
-- The entities with these names (a JSON array) and of this type, without their observations, oldest first.
SELECT {entity_columns}
FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL
CROSS JOIN entities AS e ON e.id = c.entity WHERE ?2 IS NULL OR c.type = ?2 ORDER BY e.id;

-- name: outlines_all
-- All entities, without their observations, oldest first.
SELECT {entity_columns}
FROM cards AS c NOT INDEXED CROSS JOIN entities AS e ON e.id = c.entity
WHERE c.until IS NULL ORDER BY e.id;

-- name: recent_entities
-- The entities updated since a time, the latest first, without their observations.
SELECT {entity_columns}
FROM entities AS e CROSS JOIN cards AS c ON c.entity = e.id AND c.until IS NULL
WHERE e.updated_at >= ? ORDER BY e.updated_at DESC, e.id DESC LIMIT ?;

-- name: aliased_entities
-- The entities with former names, without their observations, oldest first.
SELECT {entity_columns}
FROM cards AS c INDEXED BY cards_aliased CROSS JOIN entities AS e ON e.id = c.entity
WHERE c.aliases IS NOT NULL AND c.until IS NULL ORDER BY e.id;

-- name: entities_with_status
-- The entities with a status, or with this one, without their observations, oldest first.
SELECT {entity_columns}
FROM cards AS c INDEXED BY cards_by_status CROSS JOIN entities AS e ON e.id = c.entity
WHERE c.status IS NOT NULL AND c.until IS NULL AND (?1 IS NULL OR c.status = ?1) ORDER BY e.id;

-- name: observations_of
-- The observations of the entity with a name.
SELECT {observation_columns}
FROM cards AS c CROSS JOIN observations AS o ON o.entity = c.entity AND o.until IS NULL
WHERE c.name = ? AND c.until IS NULL ORDER BY o.ordinal;

-- name: observations_of_names
-- The observations of the entities with these names (a JSON array), entity by entity.
SELECT {observation_columns}
FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL
CROSS JOIN observations AS o ON o.entity = c.entity AND o.until IS NULL
ORDER BY o.entity, o.ordinal;

-- name: observations_of_many
-- The observations of these entities (a JSON array of row ids), entity by entity.
SELECT {observation_columns}
FROM json_each(?) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.value AND o.until IS NULL
ORDER BY o.entity, o.ordinal;

-- name: observations_all
-- Every living observation, for exports and snapshots.
SELECT entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations NOT INDEXED WHERE until IS NULL;

-- name: relations_of
-- The relations of one name, in no order.
SELECT id, source, target, type, created_at FROM relations WHERE source = ?1 AND until IS NULL
UNION ALL
SELECT id, source, target, type, created_at FROM relations WHERE target = ?1 AND source <> ?1 AND until IS NULL;

-- name: relations_of_many
-- The relations that touch one of these names (a JSON array), in no order; one that touches two comes twice.
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?1) AS wanted CROSS JOIN relations AS r ON r.source = wanted.value AND r.until IS NULL
UNION ALL
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?1) AS wanted CROSS JOIN relations AS r ON r.target = wanted.value AND r.until IS NULL;

-- name: relations_keyed
-- The relations with these keys (a JSON array of [source, target, type]).
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?) AS wanted CROSS JOIN relations AS r
    ON r.source = wanted.value ->> 0 AND r.target = wanted.value ->> 1 AND r.type = wanted.value ->> 2
    AND r.until IS NULL
ORDER BY r.id;

-- name: relations_from
-- Relations from a name, perhaps with a given target and type.
SELECT id, source, target, type, created_at FROM relations
WHERE source = ?1 AND (?2 IS NULL OR target = ?2) AND (?3 IS NULL OR type = ?3) AND until IS NULL
ORDER BY id;

-- name: relations_to
-- Relations to a name, perhaps of a given type.
SELECT id, source, target, type, created_at FROM relations
WHERE target = ?1 AND (?2 IS NULL OR type = ?2) AND until IS NULL
ORDER BY id;

-- name: relations_typed
-- Relations of a type, or all.
SELECT id, source, target, type, created_at FROM relations NOT INDEXED
WHERE (?1 IS NULL OR type = ?1) AND until IS NULL
ORDER BY id;

-- name: entity_types
-- The types of living entities, the most frequent first.
SELECT type, count(*) FROM cards NOT INDEXED WHERE until IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: types_in_use
-- The types of living entities, each found by one step in the index.
WITH RECURSIVE kinds (type) AS (
    SELECT min(type) FROM cards INDEXED BY cards_by_type WHERE until IS NULL
    UNION ALL
    SELECT (SELECT min(c.type) FROM cards AS c INDEXED BY cards_by_type WHERE c.until IS NULL AND c.type > k.type)
    FROM kinds AS k WHERE k.type IS NOT NULL
)
SELECT type FROM kinds WHERE type IS NOT NULL;

-- name: newest_of_type
-- The names of the newest entities of a type.
SELECT name FROM cards INDEXED BY cards_by_type WHERE type = ? AND until IS NULL ORDER BY entity DESC LIMIT ?;

-- name: relation_types
-- The types of living relations, the most frequent first.
SELECT type, count(*) FROM relations NOT INDEXED WHERE until IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: totals
-- How many rows live, if the last change recorded that.
SELECT entities, facts, relations, notes FROM totals WHERE change = (SELECT max(id) FROM changes);

-- name: update_totals
-- Record how many rows live after a change (?1), which created the rows after ?2 up to ?3.
UPDATE totals SET change = ?1,
    entities = entities + (SELECT count(*) FROM cards WHERE id > ?2 AND id <= ?3)
        - (SELECT count(*) FROM cards WHERE until = ?1),
    facts = facts + (SELECT count(*) FROM observations WHERE id > ?2 AND id <= ?3)
        - (SELECT count(*) FROM observations WHERE until = ?1),
    relations = relations + (SELECT count(*) FROM relations WHERE id > ?2 AND id <= ?3)
        - (SELECT count(*) FROM relations WHERE until = ?1),
    notes = notes + (SELECT count(*) FROM notes WHERE id > ?2 AND id <= ?3)
        - (SELECT count(*) FROM notes WHERE until = ?1)
WHERE change = ?1 - 1 RETURNING id;

-- name: set_totals
-- Record what was counted after a change.
INSERT OR REPLACE INTO totals (id, change, entities, facts, relations, notes) VALUES (1, ?, ?, ?, ?, ?);

-- name: count_living
-- How many rows live. The smallest index that has exactly the living ones is counted.
SELECT
    (SELECT count(*) FROM cards INDEXED BY cards_living WHERE until IS NULL),
    (SELECT count(*) FROM observations INDEXED BY observations_living WHERE until IS NULL),
    (SELECT count(*) FROM relations INDEXED BY relations_by_target WHERE until IS NULL),
    (SELECT count(*) FROM notes INDEXED BY notes_living WHERE until IS NULL);

-- name: stored_bytes
-- How many bytes of the file are in use.
SELECT (page_count - freelist_count) * page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size;

-- name: last_change
-- The last change: its id, its time, the last row id given out, and the last one that is ranked.
SELECT id, at, last_row, (SELECT last FROM ranked_row) FROM changes ORDER BY id DESC LIMIT 1;

-- name: insert_actor
-- Add an actor: a client, with its token, that makes changes.
INSERT OR IGNORE INTO actors (name, server) VALUES (?, ?);

-- name: actor_id
-- The id of an actor.
SELECT id FROM actors WHERE name = ? AND server = ?;

-- name: insert_change
-- Record a change, after all its rows.
INSERT INTO changes (id, at, actor, operation, last_row) VALUES (?, ?, ?, ?, ?);

-- name: insert_entities
-- Add an identity.
INSERT INTO entities (id, uid, next_ordinal, updated_at, touched) VALUES (?, ?, ?, ?, ?);

-- name: update_entities
-- Update the time of an entity and the ordinal that its next observation gets.
UPDATE entities SET next_ordinal = max(next_ordinal, ?2), updated_at = ?3, touched = ?4 WHERE id = ?1;

-- name: touch_entities
-- Update the times of the entities with these names (a JSON array), whose own rows stay as they are.
UPDATE entities SET updated_at = ?2, touched = ?3 WHERE id IN (
    SELECT c.entity FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL
);

-- name: set_updated
-- Set the time at which an entity from elsewhere was updated there.
UPDATE entities SET updated_at = ?2 WHERE uid = ?1;

-- name: insert_own_updates
-- Record the same for its history.
INSERT OR REPLACE INTO updates (entity, change, at) SELECT id, touched, ?2 FROM entities WHERE uid = ?1;

-- name: insert_updates
-- Record when an entity counted as updated by a change, if the change's rows do not tell.
INSERT OR REPLACE INTO updates (entity, at, change) VALUES (?, ?, ?);

-- name: insert_touches
-- Record the same for their history.
INSERT OR REPLACE INTO updates (entity, change, at)
SELECT c.entity, ?3, ?2 FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL;

-- name: updates_until
-- When entities (a JSON array of row ids) counted as updated by changes up to one, where rows do not tell.
SELECT u.change, u.at, u.entity FROM json_each(?2) AS wanted CROSS JOIN updates AS u
    ON u.entity = wanted.value AND u.change <= ?1;

-- name: insert_cards
-- Add a version of an entity's attributes.
INSERT INTO cards (id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, since)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_cards
-- End a card.
UPDATE cards SET until = ?2 WHERE id = ?1;

-- name: insert_observations
-- Add an observation.
INSERT INTO observations (id, entity, ordinal, text, created_at, valid_at, source, expires, author, since)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_observations
-- End a single observation, with the ordinal of the one that replaces it, if any.
UPDATE observations SET until = ?4, successor = ?3 WHERE entity = ?1 AND ordinal = ?2 AND until IS NULL;

-- name: end_observations_of
-- End all observations of an entity.
UPDATE observations SET until = ?2 WHERE entity = ?1 AND until IS NULL;

-- name: insert_relations
-- Add a relation.
INSERT INTO relations (id, source, target, type, created_at, since) VALUES (?, ?, ?, ?, ?, ?);

-- name: end_relations
-- End a relation.
UPDATE relations SET until = ?4 WHERE source = ?1 AND target = ?2 AND type = ?3 AND until IS NULL;

-- name: insert_notes
-- Add a version of a vault note.
INSERT INTO notes (id, key, text, tags, created_at, updated_at, since) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: end_notes
-- End a vault note.
UPDATE notes SET until = ?2 WHERE key = ?1 AND until IS NULL;

-- name: insert_note_tags
-- Add the tags of a living vault note.
INSERT INTO note_tags (tag, note)
SELECT DISTINCT t.value, n.id FROM notes AS n CROSS JOIN json_each(n.tags) AS t WHERE n.id = ?;

-- name: delete_note_tags
-- Delete the tags of a vault note, before it ends.
DELETE FROM note_tags WHERE (tag, note) IN (
    SELECT t.value, n.id FROM notes AS n CROSS JOIN json_each(n.tags) AS t WHERE n.key = ? AND n.until IS NULL
);

-- name: upsert_session_notes
-- Add a session's note, or replace the one with the same key. The table gives it an id of its own.
INSERT INTO session_notes (owner, session, key, text, tags, embedding, created_at, updated_at)
VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (owner, session, key) DO UPDATE SET text = excluded.text, tags = excluded.tags,
    embedding = excluded.embedding, created_at = excluded.created_at, updated_at = excluded.updated_at;

-- name: delete_session_notes
-- Delete a session's note. It has no history.
DELETE FROM session_notes WHERE owner = ? AND session = ? AND key = ?;

-- name: delete_all_session_notes
-- Leave the notes of sessions out of a copy.
DELETE FROM session_notes;

-- name: delete_all_session_members
-- A session of a copy is not in use.
DELETE FROM session_members;

-- name: insert_words
-- Index the words of a passage.
INSERT INTO words (rowid, name, labels, content, parts) VALUES (?, ?, ?, ?, ?);

-- name: delete_words
-- Remove a passage from the words.
DELETE FROM words WHERE rowid = ?;

-- name: insert_trigrams
-- Index the folded text of a passage.
INSERT INTO trigrams (rowid, text) VALUES (?, ?);

-- name: delete_trigrams
-- Remove a passage from the trigrams.
DELETE FROM trigrams WHERE rowid = ?;

-- name: merge_words
-- Merge index segments, up to some pages of work; a negative number starts to merge everything.
INSERT INTO words (words, rank) VALUES ('merge', ?);

-- name: merge_trigrams
-- Merge index segments, up to some pages of work; a negative number starts to merge everything.
INSERT INTO trigrams (trigrams, rank) VALUES ('merge', ?);

-- name: word_totals
-- How many passages and words are indexed, from the index itself; it answers only about a match.
SELECT index_totals(words) FROM words WHERE words MATCH ? LIMIT 1;

-- name: newest_with_word
-- How many passages match the expression, up to a limit: the newest, with the range of their ids.
SELECT count(*), min(rowid), max(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rowid DESC LIMIT ?2);

-- name: newest_words
-- The newest passages that match the expression, among the newest of all.
SELECT rowid FROM words WHERE words MATCH ?1 AND rowid > (SELECT max(last_row) FROM changes) - ?2 ORDER BY rowid DESC LIMIT ?3;

-- name: terms_between
-- The indexed terms from one to before another, up to a limit.
SELECT term FROM word_terms WHERE term >= ? AND term < ? LIMIT ?;

-- name: best_words
-- The passages that match the expression best.
SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?;

-- name: best_words_within
-- The same among the passages of some names (a JSON array), some types (likewise), a period and all of some tags; NULL allows any.
-- The first condition on names drops most observations before their cards are looked up.
SELECT w.rowid, -bm25(words) FROM words AS w
LEFT JOIN observations AS o ON o.id = w.rowid
LEFT JOIN notes AS n ON n.id = w.rowid
LEFT JOIN cards AS c ON c.id = coalesce(
    (SELECT of.id FROM cards AS of WHERE of.entity = o.entity AND of.until IS NULL), w.rowid)
WHERE w.words MATCH ?1
    AND (?3 IS NULL OR o.entity IS NULL OR o.entity IN (
        SELECT entity FROM cards WHERE until IS NULL AND name IN (SELECT value FROM json_each(?3))))
    AND (?3 IS NULL OR coalesce(c.name, n.key) IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR coalesce(c.type, 'note') IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR coalesce(o.valid_at, o.created_at, c.created_at, n.updated_at) >= ?5)
    AND (?6 IS NULL OR coalesce(o.valid_at, o.created_at, c.created_at, n.updated_at) < ?6)
    AND (?7 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?7) AS tag WHERE tag.value NOT IN (SELECT value FROM json_each(coalesce(c.tags, n.tags, '[]')))))
ORDER BY bm25(words), w.rowid LIMIT ?2;

-- name: newest_matches
-- The newest passages that match the expression.
SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?;

-- name: card_names
-- The names on living cards (a JSON array of ids; those of notes are passed over).
SELECT c.id, c.name FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.id = wanted.value AND c.until IS NULL;

-- name: match_words
-- The passages of some kinds (a JSON array) that match the expression, best first, with BM25 scores: a name weighs more
-- than a label, that more than content, and derived parts least. Materialized because bm25 works only where the match is.
WITH found AS MATERIALIZED (SELECT rowid AS id, -bm25(words, 8.0, 4.0, 1.0, 0.5) AS score FROM words WHERE words MATCH ?1)
SELECT f.id, c.name, 'entity' AS kind, f.score FROM found AS f CROSS JOIN cards AS c ON c.id = f.id
WHERE 'entity' IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT f.id, c.name, 'fact', f.score FROM found AS f CROSS JOIN observations AS o ON o.id = f.id
CROSS JOIN cards AS c ON c.entity = o.entity AND c.until IS NULL
WHERE 'fact' IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT f.id, n.key, 'note', f.score FROM found AS f CROSS JOIN notes AS n ON n.id = f.id
WHERE 'note' IN (SELECT value FROM json_each(?2))
ORDER BY 4 DESC, 1 LIMIT ?3;

-- name: match_notes
-- The vault notes that match the expression, with BM25 scores over equal columns; the smaller the better.
SELECT w.rowid, bm25(words) FROM words AS w CROSS JOIN notes AS n ON n.id = w.rowid WHERE w.words MATCH ?;

-- name: passages_by_id
-- The living passages with these ids (a JSON array): cards, observations and notes.
SELECT c.id, c.name, c.type, 0, coalesce(c.summary, ''), c.created_at, 0, c.tags, NULL, c.expires
FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.id = wanted.value AND c.until IS NULL
UNION ALL
SELECT o.id, c.name, c.type, o.ordinal, o.text, o.created_at, coalesce(o.valid_at, 0), c.tags, o.source,
    min(coalesce(o.expires, c.expires), coalesce(c.expires, o.expires))
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value AND o.until IS NULL
CROSS JOIN cards AS c ON c.entity = o.entity AND c.until IS NULL
UNION ALL
SELECT n.id, n.key, 'note', -1, n.text, n.updated_at, 0, n.tags, NULL, NULL
FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.id = wanted.value AND n.until IS NULL;

-- name: observations_between
-- The newest observations of a period.
SELECT id FROM observations
WHERE coalesce(valid_at, created_at) >= ? AND coalesce(valid_at, created_at) < ? AND until IS NULL
ORDER BY coalesce(valid_at, created_at) DESC, id DESC LIMIT ?;

-- name: neighbour_ids
-- For observations (a JSON array of ids) up to two before and one after in the same conversation; NULL if there are none. Ids are in
-- order of writing. Without a source, a few observations before and after (?2) are considered, if the same client wrote
-- them and their times are at most ?3 apart.
WITH near (id, before, after) AS MATERIALIZED (
SELECT o.id,
    (SELECT json_group_array(id) FROM (
        SELECT n.id FROM observations AS n INDEXED BY observations_by_source
        WHERE n.source = o.source AND n.until IS NULL AND n.id < o.id ORDER BY n.id DESC LIMIT 2)),
    (SELECT json_group_array(id) FROM (
        SELECT n.id FROM observations AS n INDEXED BY observations_by_source
        WHERE n.source = o.source AND n.until IS NULL AND n.id > o.id ORDER BY n.id LIMIT 1))
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value AND o.source IS NOT NULL
UNION ALL
SELECT o.id,
    (SELECT json_group_array(id) FROM (
        SELECT near.id FROM (
            SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n NOT INDEXED
            WHERE n.until IS NULL AND n.source IS NULL AND n.id < o.id ORDER BY n.id DESC LIMIT ?2
        ) AS near CROSS JOIN changes AS made ON made.id = near.since
        WHERE made.actor = own.actor AND abs(near.at - coalesce(o.valid_at, o.created_at)) <= ?3
        ORDER BY near.id DESC LIMIT 2)),
    (SELECT json_group_array(id) FROM (
        SELECT near.id FROM (
            SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n NOT INDEXED
            WHERE n.until IS NULL AND n.source IS NULL AND n.id > o.id ORDER BY n.id LIMIT ?2
        ) AS near CROSS JOIN changes AS made ON made.id = near.since
        WHERE made.actor = own.actor AND abs(near.at - coalesce(o.valid_at, o.created_at)) <= ?3
        ORDER BY near.id LIMIT 1))
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value AND o.source IS NULL
CROSS JOIN changes AS own ON own.id = o.since
)
SELECT id, before ->> 0, before ->> 1, after ->> 0 FROM near;

-- name: newest_passages
-- Some passages, the newest first, where a query is too short to select any.
SELECT rowid FROM words ORDER BY rowid DESC LIMIT ?;

-- name: observation_counts
-- How many living observations the entities with these names (a JSON array) have.
SELECT c.name, (SELECT count(*) FROM observations AS o WHERE o.entity = c.entity AND o.until IS NULL)
FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL;

-- name: match_trigrams
-- Passages that have the trigrams, up to a limit.
SELECT rowid FROM trigrams WHERE trigrams MATCH ? LIMIT ?;

-- name: trigrams_starting
-- The indexed trigrams between two texts, up to a limit.
SELECT term FROM trigram_terms WHERE term >= ? AND term < ? LIMIT ?;

-- name: texts_of
-- The texts of cards and observations with these passage ids (a JSON array), by entity.
SELECT c.entity, c.name, c.type FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.id = wanted.value
UNION ALL
SELECT o.entity, o.text, '' FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value;

-- name: texts_of_all
-- Every text by entity, for queries so short that nearly everything has them.
SELECT entity, name, type FROM cards NOT INDEXED WHERE until IS NULL
UNION ALL
SELECT entity, text, '' FROM observations NOT INDEXED WHERE until IS NULL;

-- name: note_texts
-- The texts of living vault notes, or of some of them (a JSON array of ids).
SELECT id, key, text FROM notes
WHERE until IS NULL AND (?1 IS NULL OR id IN (SELECT value FROM json_each(?1)));

-- name: note_keyed
-- One vault note with the vector its client gave.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.vector FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
    WHERE v.passage = n.id AND v.template = 1 AND m.url = 'client')
FROM notes AS n WHERE n.key = ? AND n.until IS NULL;

-- name: notes_listed
-- A page of the vault notes with all of the tags (a JSON array), created before a time, with keys between two texts.
-- NULL is any. A rewritten note keeps its place.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.vector FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
    WHERE v.passage = n.id AND v.template = 1 AND m.url = 'client')
FROM notes AS n
WHERE n.until IS NULL AND (?2 IS NULL OR n.created_at < ?2) AND (?3 IS NULL OR n.key >= ?3 AND n.key < ?4)
    AND (SELECT count(*) FROM note_tags AS t WHERE t.note = n.id AND t.tag IN (SELECT value FROM json_each(?1)))
        = json_array_length(?1)
ORDER BY n.created_at, n.id LIMIT coalesce(?5, -1) OFFSET ?6;

-- name: any_note
-- A row if the vault has a note.
SELECT 1 FROM notes WHERE until IS NULL LIMIT 1;

-- name: notes_by_id
-- The vault notes that a search found (a JSON array of ids), without vectors.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, NULL
FROM json_each(?) AS wanted CROSS JOIN notes AS n ON n.id = wanted.value AND n.until IS NULL;

-- name: notes_exactly
-- The vault notes whose key or whole text is the query.
SELECT id FROM notes WHERE key = ?1 AND until IS NULL
UNION
SELECT id FROM notes WHERE substr(text, 1, 40) = substr(?1, 1, 40) AND text = ?1 AND until IS NULL;

-- name: notes_tagged
-- The ids of the vault notes that have all of the different tags (a JSON array).
SELECT t.note FROM json_each(?1) AS wanted CROSS JOIN note_tags AS t ON t.tag = wanted.value
GROUP BY t.note HAVING count(*) = json_array_length(?1);

-- name: newest_notes
-- The ids of the newest vault notes.
SELECT id FROM notes WHERE until IS NULL ORDER BY id DESC LIMIT ?;

-- name: session_notes
-- All notes of one session, oldest first: there are few.
SELECT id, key, text, tags, created_at, updated_at, embedding FROM session_notes WHERE owner = ? AND session = ? ORDER BY id;

-- name: create_session_words
-- Create an index for the notes of one session, in this connection's own memory.
CREATE VIRTUAL TABLE IF NOT EXISTS temp.session_words
USING fts5 (name, labels, content, parts, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2');

-- name: fill_session_words
-- Index a note of the session. The notes of others must not influence its scores.
INSERT INTO temp.session_words (rowid, name, labels, content, parts) VALUES (?, ?, ?, ?, ?);

-- name: clear_session_words
-- Empty the index, for the next search.
INSERT INTO temp.session_words (session_words) VALUES ('delete-all');

-- name: match_session_words
-- The session's notes that match the expression; the smaller the score the better.
SELECT rowid, bm25(session_words) FROM temp.session_words WHERE session_words MATCH ?;

-- name: join_session
-- Record that a conversation uses a session now.
INSERT INTO session_members (member, owner, session, server, used_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (member, owner, session) DO UPDATE SET server = excluded.server, used_at = excluded.used_at;

-- name: has_joined
-- Whether a conversation uses a session or, with a time, one that it has not used since then.
SELECT EXISTS (SELECT 1 FROM session_members WHERE member = ?1 AND (?2 IS NULL OR used_at < ?2));

-- name: leave_sessions
-- Remove a conversation from its sessions or, with a time, from those that it has not used since then.
DELETE FROM session_members WHERE member = ?1 AND (?2 IS NULL OR used_at < ?2);

-- name: remove_server
-- Remove all conversations of a server that has died.
DELETE FROM session_members WHERE server = ?;

-- name: session_members
-- The servers that use each session.
SELECT server, owner, session FROM session_members;

-- name: sessions
-- The sessions that have notes.
SELECT DISTINCT owner, session FROM session_notes;

-- name: changes_since
-- Changes after an id, oldest first; NULL means no limit.
SELECT c.id, c.at, a.name, c.operation, a.server FROM changes AS c CROSS JOIN actors AS a ON a.id = c.actor
WHERE c.id > ?1 ORDER BY c.id LIMIT coalesce(?2, -1);

-- name: latest_changes
-- Changes between two ids, newest first, perhaps of some actors or operations (JSON arrays; NULL allows any).
SELECT c.id, c.at, a.name, c.operation, a.server FROM changes AS c CROSS JOIN actors AS a ON a.id = c.actor
WHERE c.id > ?1 AND c.id < ?2 AND (?3 IS NULL OR a.name IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR c.operation IN (SELECT value FROM json_each(?4)))
ORDER BY c.id DESC LIMIT coalesce(?5, -1);

-- name: changes_among
-- The same among some ids (?6, a JSON array). Only these are read.
SELECT c.id, c.at, a.name, c.operation, a.server
FROM json_each(?6) AS wanted CROSS JOIN changes AS c ON c.id = wanted.value CROSS JOIN actors AS a ON a.id = c.actor
WHERE c.id > ?1 AND c.id < ?2 AND (?3 IS NULL OR a.name IN (SELECT value FROM json_each(?3)))
    AND (?4 IS NULL OR c.operation IN (SELECT value FROM json_each(?4)))
ORDER BY c.id DESC LIMIT coalesce(?5, -1);

-- name: actor_names
-- Everyone who made a change.
SELECT DISTINCT name FROM actors ORDER BY name;

-- fragment: named_before
-- The entities that have or had one of these names (a JSON array), with every name they had.
SELECT c.entity, c.name FROM cards AS c WHERE c.entity IN (
    SELECT n.entity FROM json_each(?1) AS wanted CROSS JOIN cards AS n ON n.name = wanted.value AND n.until IS NULL
    UNION
    SELECT n.entity FROM json_each(?1) AS wanted CROSS JOIN cards AS n ON n.name = wanted.value AND n.until IS NOT NULL
)

-- name: identities_named
-- The same, as a list.
{named_before};

-- name: changes_of
-- The changes that touched entities with some names, now or before, or relations and notes with one of their names.
WITH known AS MATERIALIZED (
    {named_before}
), names AS MATERIALIZED (SELECT name FROM known UNION SELECT value FROM json_each(?1))
SELECT c.since, c.until FROM (SELECT DISTINCT entity FROM known) AS wanted CROSS JOIN cards AS c ON c.entity = wanted.entity
UNION
SELECT o.since, NULL FROM (SELECT DISTINCT entity FROM known) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.entity AND o.until IS NULL
UNION
SELECT o.since, o.until FROM (SELECT DISTINCT entity FROM known) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.entity AND o.until IS NOT NULL
UNION
SELECT r.since, NULL FROM names AS wanted CROSS JOIN relations AS r ON r.source = wanted.name AND r.until IS NULL
UNION
SELECT r.since, NULL FROM names AS wanted CROSS JOIN relations AS r ON r.target = wanted.name AND r.until IS NULL
UNION
SELECT r.since, r.until FROM names AS wanted CROSS JOIN relations AS r ON r.source = wanted.name AND r.until IS NOT NULL
UNION
SELECT r.since, r.until FROM names AS wanted CROSS JOIN relations AS r ON r.target = wanted.name AND r.until IS NOT NULL
UNION
SELECT k.since, NULL FROM names AS wanted CROSS JOIN notes AS k ON k.key = wanted.name AND k.until IS NULL
UNION
SELECT k.since, k.until FROM names AS wanted CROSS JOIN notes AS k ON k.key = wanted.name AND k.until IS NOT NULL;

-- name: authors_of
-- The changes that first wrote living passages (a JSON array of [name or key, ordinal]): a text that was deleted and came
-- back still has its first author.
WITH wanted AS (SELECT value ->> 0 AS name, value ->> 1 AS ordinal FROM json_each(?)),
first AS (
    SELECT w.name, w.ordinal, (SELECT min(f.since) FROM cards AS f WHERE f.entity = c.entity) AS change,
        NULL AS author, NULL AS at
    FROM wanted AS w CROSS JOIN cards AS c ON c.name = w.name AND c.until IS NULL WHERE w.ordinal = 0
    UNION ALL
    SELECT w.name, w.ordinal, coalesce((SELECT min(f.since) FROM observations AS f WHERE f.entity = o.entity
        AND f.ordinal = o.ordinal AND f.until IS NOT NULL AND f.text = o.text), o.since), o.author, o.created_at
    FROM wanted AS w CROSS JOIN cards AS c ON c.name = w.name AND c.until IS NULL
    CROSS JOIN observations AS o ON o.entity = c.entity AND o.ordinal = w.ordinal AND o.until IS NULL WHERE w.ordinal > 0
    UNION ALL
    SELECT w.name, w.ordinal, coalesce((SELECT min(f.since) FROM notes AS f
        WHERE f.key = n.key AND f.until IS NOT NULL AND f.text = n.text), n.since), NULL, NULL
    FROM wanted AS w CROSS JOIN notes AS n ON n.key = w.name AND n.until IS NULL WHERE w.ordinal < 0
)
SELECT f.name, f.ordinal, coalesce(f.author, a.name), iif(f.author IS NULL, ch.at, f.at), ch.id
FROM first AS f CROSS JOIN changes AS ch ON ch.id = f.change CROSS JOIN actors AS a ON a.id = ch.actor;

-- name: last_row_of
-- The last row id that a change and all before it gave out.
SELECT last_row FROM changes WHERE id <= ? ORDER BY id DESC LIMIT 1;

-- name: change_at
-- The last change at or before a time. Ids decide the order. The clock may have been wrong in either direction: where the
-- times of changes contradict their order, the answer is the change that agrees with most of them.
WITH bounds AS (
    SELECT coalesce((SELECT min(id) FROM changes WHERE at > ?1) - 1, max(id), 0) AS low, coalesce(max(id), 0) AS high
    FROM changes WHERE at <= ?1
), votes AS (
    SELECT c.id, sum(CASE WHEN c.at <= ?1 THEN 1 ELSE -1 END) OVER (ORDER BY c.id) AS agreement
    FROM bounds AS b JOIN changes AS c ON c.id > b.low AND c.id <= b.high
)
SELECT coalesce((SELECT id FROM votes WHERE agreement >= 0 ORDER BY agreement DESC, id DESC LIMIT 1), low) FROM bounds;

-- name: change_times
-- The times of changes (a JSON array of ids).
SELECT id, at FROM changes WHERE id IN (SELECT value FROM json_each(?));

-- name: last_purge
-- The last change whose ended rows were purged.
SELECT coalesce(max(change), 0) FROM purges;

-- fragment: first_row
-- The first row that changes (?1 to ?2) created: rows are numbered through, and a change knows its last one.
(SELECT 1 + coalesce((SELECT last_row FROM changes WHERE id < ?1 ORDER BY id DESC LIMIT 1), 0))

-- fragment: last_row
-- The last one.
(SELECT last_row FROM changes WHERE id = ?2)

-- name: cards_changed
-- The cards that changes (?1 to ?2) created or ended.
SELECT c.id, c.since, c.until, {entity_columns}
FROM cards AS c CROSS JOIN entities AS e ON e.id = c.entity WHERE c.id BETWEEN {first_row} AND {last_row}
UNION
SELECT c.id, c.since, c.until, {entity_columns}
FROM cards AS c CROSS JOIN entities AS e ON e.id = c.entity WHERE c.until BETWEEN ?1 AND ?2;

-- name: observations_changed
-- The observations that changes created or ended.
SELECT id, since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations WHERE id BETWEEN {first_row} AND {last_row}
UNION
SELECT id, since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations WHERE until BETWEEN ?1 AND ?2;

-- name: relations_changed
-- The relations that changes created or ended.
SELECT id, since, until, source, target, type, created_at FROM relations WHERE id BETWEEN {first_row} AND {last_row}
UNION
SELECT id, since, until, source, target, type, created_at FROM relations WHERE until BETWEEN ?1 AND ?2;

-- name: notes_changed
-- The vault notes that changes created or ended, with the vectors their clients gave.
SELECT n.id, n.since, n.until, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.vector FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
    WHERE v.passage = n.id AND v.template = 1 AND m.url = 'client')
FROM notes AS n WHERE n.id BETWEEN {first_row} AND {last_row} OR n.until BETWEEN ?1 AND ?2 ORDER BY n.id;

-- name: names_changed
-- Every version of the cards of entities whose observations changes created or ended, to know their names then.
SELECT c.entity, c.name, c.since, c.until FROM (
    SELECT entity FROM observations WHERE id BETWEEN {first_row} AND {last_row}
    UNION
    SELECT entity FROM observations WHERE until BETWEEN ?1 AND ?2
) AS changed CROSS JOIN cards AS c ON c.entity = changed.entity;

-- name: change_sizes
-- How many rows changes (a JSON array of ids) ended and created: an import has thousands, and a list only counts them.
WITH wanted AS (
    SELECT c.id AS change, c.last_row, coalesce(
        (SELECT p.last_row FROM changes AS p WHERE p.id < c.id ORDER BY p.id DESC LIMIT 1), 0) AS previous
    FROM json_each(?) AS given CROSS JOIN changes AS c ON c.id = given.value
)
SELECT change,
    (SELECT count(*) FROM cards WHERE until = change),
    (SELECT count(*) FROM observations WHERE until = change),
    (SELECT count(*) FROM relations WHERE until = change),
    (SELECT count(*) FROM notes WHERE until = change),
    (SELECT count(*) FROM cards WHERE id > previous AND id <= last_row),
    (SELECT count(*) FROM observations WHERE id > previous AND id <= last_row),
    (SELECT count(*) FROM relations WHERE id > previous AND id <= last_row),
    (SELECT count(*) FROM notes WHERE id > previous AND id <= last_row)
FROM wanted;

-- name: mark_named
-- A point of history by the name it was marked with.
SELECT change, at FROM marks WHERE name = ?;

-- name: set_mark
-- Mark a point of history, in place of the last one with that name.
INSERT INTO marks (name, change, at) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET change = excluded.change, at = excluded.at;

-- name: insert_read
-- Record that somebody (?4) read a fact with a tool (?5).
INSERT INTO reads (at, actor, tool, entity, ordinal)
SELECT ?3, ?4, ?5, c.entity, ?2 FROM cards AS c WHERE c.name = ?1 AND c.until IS NULL;

-- name: forget_reads
-- Delete the reads before a time.
DELETE FROM reads WHERE at < ?;

-- name: reads_since
-- The reads since a time, newest first, with the names that the entities have now.
SELECT r.at, r.actor, r.tool, coalesce(c.name, '') AS entity, r.ordinal
FROM reads AS r LEFT JOIN cards AS c ON c.entity = r.entity AND c.until IS NULL
WHERE r.at >= ? ORDER BY r.at DESC, r.rowid;

-- name: entities_called
-- The entities that had one of these names (a JSON array) at a change.
SELECT c.entity FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NULL
WHERE c.since <= ?2
UNION
SELECT c.entity FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.name = wanted.value AND c.until IS NOT NULL
WHERE c.since <= ?2 AND c.until > ?2;

-- name: cards_until
-- The versions up to a change of the cards of some entities (a JSON array of row ids), to read a past state.
SELECT c.since, c.until, {entity_columns}, e.touched
FROM json_each(?2) AS wanted CROSS JOIN cards AS c ON c.entity = wanted.value CROSS JOIN entities AS e ON e.id = c.entity
WHERE c.since <= ?1;

-- name: observations_until
-- The versions up to a change of the observations of some entities (a JSON array of row ids).
SELECT o.since, o.until, {observation_columns}
FROM json_each(?2) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.value AND o.until IS NULL WHERE o.since <= ?1
UNION ALL
SELECT o.since, o.until, {observation_columns}
FROM json_each(?2) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.value AND o.until IS NOT NULL WHERE o.since <= ?1;

-- name: all_cards_until
-- The versions up to a change of every card.
SELECT c.since, c.until, {entity_columns}, e.touched
FROM cards AS c NOT INDEXED CROSS JOIN entities AS e ON e.id = c.entity WHERE c.since <= ?;

-- name: all_observations_until
-- The versions up to a change of every observation.
SELECT since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations NOT INDEXED WHERE since <= ?;

-- name: relations_at
-- The relations that lived at a change.
SELECT id, source, target, type, created_at FROM relations NOT INDEXED
WHERE since <= ?1 AND (until IS NULL OR until > ?1) ORDER BY id;

-- name: relations_of_at
-- The relations that touched one of the names (a JSON array) at a change; one that touches two comes twice.
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?2) AS wanted CROSS JOIN relations AS r ON r.source = wanted.value AND r.until IS NULL WHERE r.since <= ?1
UNION ALL
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?2) AS wanted CROSS JOIN relations AS r ON r.target = wanted.value AND r.until IS NULL WHERE r.since <= ?1
UNION ALL
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?2) AS wanted CROSS JOIN relations AS r ON r.source = wanted.value AND r.until > ?1 WHERE r.since <= ?1
UNION ALL
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?2) AS wanted CROSS JOIN relations AS r ON r.target = wanted.value AND r.until > ?1 WHERE r.since <= ?1;

-- name: notes_at
-- The vault notes that lived at a change.
SELECT id, key, text, tags, created_at, updated_at, NULL FROM notes NOT INDEXED
WHERE since <= ?1 AND (until IS NULL OR until > ?1) ORDER BY created_at, id;

-- name: trashed_cards
-- The last card of each deleted entity, the latest deletion first.
SELECT {entity_columns}, c.until, ch.at
FROM cards AS c CROSS JOIN entities AS e ON e.id = c.entity CROSS JOIN changes AS ch ON ch.id = c.until
WHERE c.until IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM cards AS later WHERE later.entity = c.entity AND (later.until IS NULL OR later.until > c.until)
)
ORDER BY c.until DESC, e.id;

-- name: ended_observations
-- The past versions of the observations of an entity that do not live, or that expired (until ?2) after one was to replace them,
-- with the changes that ended them, the latest first.
SELECT o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author, o.successor, ch.id, ch.at, a.name, ch.operation
FROM observations AS o CROSS JOIN changes AS ch ON ch.id = o.until CROSS JOIN actors AS a ON a.id = ch.actor
WHERE o.entity = ?1 AND o.until IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM observations AS living
    WHERE living.entity = o.entity AND living.ordinal = o.ordinal AND living.until IS NULL
        AND (o.successor IS NULL OR living.expires IS NULL OR living.expires > ?2)
)
ORDER BY o.ordinal DESC, o.id DESC LIMIT ?3;

-- name: ended_with
-- The observations of an entity that ended with a change.
SELECT entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations WHERE entity = ? AND until = ? ORDER BY ordinal;

-- name: trashed_observations
-- The last version of each observation that was deleted without its entity, the latest first, with its entity.
SELECT o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author, ch.at, o.until, e.uid, c.name, c.until
FROM observations AS o CROSS JOIN changes AS ch ON ch.id = o.until CROSS JOIN entities AS e ON e.id = o.entity
CROSS JOIN cards AS c ON c.id = (
    SELECT last.id FROM cards AS last WHERE last.entity = o.entity ORDER BY last.until IS NULL DESC, last.until DESC LIMIT 1
)
WHERE o.until IS NOT NULL AND o.until IS NOT c.until
    AND NOT EXISTS (
        SELECT 1 FROM observations AS living
        WHERE living.entity = o.entity AND living.ordinal = o.ordinal AND living.until IS NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM observations AS later
        WHERE later.entity = o.entity AND later.ordinal = o.ordinal AND later.until > o.until
    )
ORDER BY o.until DESC, o.id;

-- name: trashed_relations
-- The last version of each deleted relation, the latest first.
SELECT r.id, r.source, r.target, r.type, r.created_at, r.until, ch.at
FROM relations AS r CROSS JOIN changes AS ch ON ch.id = r.until
WHERE r.until IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM relations AS living
        WHERE living.source = r.source AND living.target = r.target AND living.type = r.type AND living.until IS NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM relations AS later
        WHERE later.source = r.source AND later.target = r.target AND later.type = r.type AND later.until > r.until
    )
ORDER BY r.until DESC, r.id;

-- name: trashed_notes
-- The last version of each deleted vault note, the latest first.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.vector FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
    WHERE v.passage = n.id AND v.template = 1 AND m.url = 'client'), ch.at, n.until
FROM notes AS n CROSS JOIN changes AS ch ON ch.id = n.until
WHERE n.until IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM notes AS living WHERE living.key = n.key AND living.until IS NULL)
    AND NOT EXISTS (SELECT 1 FROM notes AS later WHERE later.key = n.key AND later.until > n.until)
ORDER BY n.until DESC, n.id;

-- name: last_change_before
-- The last change before a time.
SELECT coalesce(max(id), 0) FROM changes WHERE at < ?;

-- name: first_change_between
-- The first change from a time until another; NULL if there is none.
SELECT min(id) FROM changes WHERE at >= ? AND at <= ?;

-- name: latest_time
-- The latest time that a change has; 0 without changes.
SELECT coalesce(max(at), 0) FROM changes;

-- name: purge_cards
-- Delete the cards that ended at or before a change.
DELETE FROM cards WHERE until <= ? RETURNING id;

-- name: purge_observations
-- Delete the observations that ended at or before a change.
DELETE FROM observations WHERE until <= ? RETURNING id;

-- name: purge_relations
-- Delete the relations that ended at or before a change.
DELETE FROM relations WHERE until <= ? RETURNING id;

-- name: purge_notes
-- Delete the vault notes that ended at or before a change.
DELETE FROM notes WHERE until <= ? RETURNING id;

-- name: purge_entities
-- Delete the identities that have no rows left.
DELETE FROM entities WHERE NOT EXISTS (SELECT 1 FROM cards AS c WHERE c.entity = entities.id)
    AND NOT EXISTS (SELECT 1 FROM observations AS o WHERE o.entity = entities.id AND o.until IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM observations AS o WHERE o.entity = entities.id AND o.until IS NULL)
RETURNING id;

-- name: entities_to_purge
-- The entities that lose rows to a purge up to a change and lived after it.
WITH losing AS MATERIALIZED (
    SELECT o.entity FROM observations AS o WHERE o.until <= ?1
    UNION ALL
    SELECT gone.entity FROM cards AS gone WHERE gone.until <= ?1
)
SELECT DISTINCT c.entity FROM losing CROSS JOIN cards AS c ON c.entity = losing.entity
WHERE c.since <= ?1 AND (c.until IS NULL OR c.until > ?1);

-- name: forget_updates
-- Delete what the settled times of update of entities (a JSON array of row ids) replace.
DELETE FROM updates WHERE entity IN (SELECT value FROM json_each(?1)) AND change <= ?2;

-- name: settle_updates
-- Record when entities (a JSON array of row ids) counted as updated (a JSON array of times) as of a change.
INSERT OR REPLACE INTO updates (entity, change, at)
SELECT wanted.value, ?3, times.value FROM json_each(?1) AS wanted CROSS JOIN json_each(?2) AS times ON times.key = wanted.key;

-- name: purge_updates
-- Delete the times of update of identities that are gone.
DELETE FROM updates WHERE NOT EXISTS (SELECT 1 FROM entities AS e WHERE e.id = updates.entity);

-- name: delete_vectors_of
-- Delete the vectors of passages (a JSON array of ids) whose texts are gone.
DELETE FROM vectors WHERE passage IN (SELECT value FROM json_each(?));

-- name: record_purge
-- Record that states up to this change can no longer be read.
INSERT OR IGNORE INTO purges (change) VALUES (?);

-- name: cards_of_entities
-- Every version of the cards of entities (a JSON array of row ids), to find what an erasure concerns.
SELECT c.id, c.entity, c.name, c.summary, c.since, c.until
FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.entity = wanted.value;

-- name: uids_of
-- The ids of entities (a JSON array of row ids).
SELECT e.id, e.uid FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value;

-- name: entities_merged_by
-- The entities that changes (a JSON array) ended and that never came back: they were merged.
SELECT DISTINCT c.entity FROM json_each(?) AS wanted CROSS JOIN cards AS c ON c.until = wanted.value
WHERE NOT EXISTS (SELECT 1 FROM cards AS later WHERE later.entity = c.entity AND later.since >= c.until);

-- name: facts_of
-- Every version of the facts of entities (a JSON array of row ids).
SELECT o.id, o.entity, o.ordinal, o.text, o.created_at, o.since, o.until
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.value AND o.until IS NULL
UNION ALL
SELECT o.id, o.entity, o.ordinal, o.text, o.created_at, o.since, o.until
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.entity = wanted.value AND o.until IS NOT NULL;

-- name: facts_with_texts
-- Every version of every fact with one of these texts (a JSON array), for an erasure: it writes the whole file anew anyway.
SELECT id, entity, ordinal, text, created_at, since, until FROM observations
WHERE text IN (SELECT value FROM json_each(?));

-- name: relations_naming
-- Every version of the relations with one of these names (a JSON array) at an end.
SELECT r.id, r.source, r.target, r.type, r.created_at, r.since, r.until
FROM relations AS r WHERE r.source IN (SELECT value FROM json_each(?1)) AND r.until IS NULL
UNION
SELECT r.id, r.source, r.target, r.type, r.created_at, r.since, r.until
FROM relations AS r WHERE r.target IN (SELECT value FROM json_each(?1)) AND r.until IS NULL
UNION
SELECT r.id, r.source, r.target, r.type, r.created_at, r.since, r.until
FROM relations AS r WHERE r.source IN (SELECT value FROM json_each(?1)) AND r.until IS NOT NULL
UNION
SELECT r.id, r.source, r.target, r.type, r.created_at, r.since, r.until
FROM relations AS r WHERE r.target IN (SELECT value FROM json_each(?1)) AND r.until IS NOT NULL;

-- name: notes_keyed
-- Every version of the vault notes with these keys (a JSON array).
SELECT n.id FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.key = wanted.value AND n.until IS NULL
UNION ALL
SELECT n.id FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.key = wanted.value AND n.until IS NOT NULL;

-- name: erase_facts
-- Replace the texts of facts (a JSON array of row ids) that have ended.
UPDATE observations SET text = '(erased)', source = NULL
WHERE id IN (SELECT value FROM json_each(?)) AND until IS NOT NULL;

-- name: erase_cards
-- Replace the attributes of entities in cards (a JSON array of row ids) that have ended.
UPDATE cards SET name = '(erased)', type = '(erased)', summary = NULL, tags = NULL, aliases = NULL, status = NULL
WHERE id IN (SELECT value FROM json_each(?)) AND until IS NOT NULL;

-- name: erase_summaries
-- Replace the summaries of cards (a JSON array of row ids) that have ended.
UPDATE cards SET summary = '(erased)' WHERE id IN (SELECT value FROM json_each(?)) AND until IS NOT NULL;

-- name: erase_relations
-- Replace the types of relations (a JSON array of row ids) that have ended, and these names (likewise) at their ends.
UPDATE relations SET type = '(erased)',
    source = iif(source IN (SELECT value FROM json_each(?2)), '(erased)', source),
    target = iif(target IN (SELECT value FROM json_each(?2)), '(erased)', target)
WHERE id IN (SELECT value FROM json_each(?1)) AND until IS NOT NULL;

-- name: erase_notes
-- Replace vault notes (a JSON array of row ids) that have ended.
UPDATE notes SET key = '(erased)', text = '(erased)', tags = NULL
WHERE id IN (SELECT value FROM json_each(?)) AND until IS NOT NULL;

-- name: request_rewrite
-- Remember that deleted text may be left in unused space, until the file is written anew.
INSERT OR REPLACE INTO marks (name, change, at) SELECT 'rewrite due', coalesce(max(id), 0), 0 FROM changes;

-- name: rewrite_is_due
-- Whether the file was not written anew since text was last deleted for good.
SELECT EXISTS (SELECT 1 FROM marks WHERE name = 'rewrite due');

-- name: end_rewrite
-- The file has no deleted text in it any more.
DELETE FROM marks WHERE name = 'rewrite due';

-- name: rewrite
-- Write all pages anew. Zeroing deleted cells is not enough: a page that was split keeps copies of cells in its unused space.
VACUUM;

-- name: models_all
-- The models that embedders made vectors with, oldest first; clients' own vectors are not among them.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit FROM models WHERE url <> 'client' ORDER BY id;

-- name: model_of
-- One model by its identity.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit FROM models WHERE identity = ?;

-- name: set_scale
-- Store the scale of a model's cosines.
UPDATE models SET cosine_zero = ?2, cosine_unit = ?3 WHERE id = ?1;

-- name: insert_model
-- Add a model. The table gives it a number that no model before it had.
INSERT OR IGNORE INTO models (identity, url, dimension) VALUES (?2, ?3, ?4);

-- name: delete_model
-- Delete a model without vectors.
DELETE FROM models WHERE id = ?;

-- name: delete_vectors_of_model
-- Delete some vectors of a model.
DELETE FROM vectors WHERE id IN (SELECT id FROM vectors WHERE model = ? LIMIT ?) RETURNING id;

-- name: perspectives_all
-- The perspectives, oldest first.
SELECT p.name, t.template, p.query FROM perspectives AS p CROSS JOIN templates AS t ON t.id = p.template ORDER BY p.id;

-- name: template_of
-- The template of a perspective.
SELECT t.id, t.template FROM perspectives AS p CROSS JOIN templates AS t ON t.id = p.template WHERE p.name = ?;

-- name: templates_in_use
-- The ids of the templates that perspectives have.
SELECT DISTINCT template FROM perspectives;

-- name: insert_template
-- Add a template.
INSERT OR IGNORE INTO templates (template) VALUES (?);

-- name: upsert_perspective
-- Add a perspective, or replace the one with that name.
INSERT INTO perspectives (name, template, query) SELECT ?1, id, ?3 FROM templates WHERE template = ?2
ON CONFLICT (name) DO UPDATE SET template = excluded.template, query = excluded.query;

-- name: delete_perspective
-- Remove a perspective; return a row if there was one.
DELETE FROM perspectives WHERE name = ? RETURNING id;

-- name: delete_unused_vectors
-- Delete some vectors of templates (a JSON array).
DELETE FROM vectors WHERE id IN (
    SELECT v.id FROM vectors AS v WHERE v.template IN (SELECT value FROM json_each(?1)) LIMIT ?2
) RETURNING id;

-- name: delete_templates
-- Delete templates (a JSON array) that have no vectors.
DELETE FROM templates WHERE id IN (SELECT value FROM json_each(?));

-- name: unused_templates
-- The templates that no perspective has.
SELECT id FROM templates WHERE id NOT IN (SELECT template FROM perspectives);

-- name: insert_vector
-- Add the vector of a passage that still lives. An existing vector stays.
INSERT OR IGNORE INTO vectors (passage, template, model, vector)
SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM cards WHERE id = ?1 AND until IS NULL)
    OR EXISTS (SELECT 1 FROM observations WHERE id = ?1 AND until IS NULL)
    OR EXISTS (SELECT 1 FROM notes WHERE id = ?1 AND until IS NULL);

-- name: vectors_since
-- The vectors of living passages written after an id, in order, up to a limit. One of a wrong length counts as missing.
SELECT v.id, v.passage, v.vector FROM vectors AS v
WHERE v.id > ?3 AND v.model = ?1 AND v.template = ?2
    AND length(v.vector) IN (SELECT 2 * m.dimension FROM models AS m WHERE m.id = ?1 UNION ALL SELECT 4 * m.dimension FROM models AS m WHERE m.id = ?1)
ORDER BY v.id LIMIT ?4;

-- name: count_broken_vectors
-- How many vectors have a length that their model does not have.
SELECT count(*) FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
WHERE length(v.vector) NOT IN (2 * m.dimension, 4 * m.dimension);

-- name: delete_broken_vectors
-- Delete them, so that they are made again.
DELETE FROM vectors WHERE id IN (
    SELECT v.id FROM vectors AS v CROSS JOIN models AS m ON m.id = v.model
    WHERE length(v.vector) NOT IN (2 * m.dimension, 4 * m.dimension)
) RETURNING id;

-- name: ended_since
-- The passages that ended after a change.
SELECT id FROM cards WHERE until > ?1
UNION ALL SELECT id FROM observations WHERE until > ?1
UNION ALL SELECT id FROM notes WHERE until > ?1;

-- name: ended_by
-- The passages that a change ended.
SELECT id FROM cards WHERE until = ?1
UNION ALL SELECT id FROM observations WHERE until = ?1
UNION ALL SELECT id FROM notes WHERE until = ?1;

-- name: delete_named_vectors
-- Delete the vectors of an entity's observations that were made with its name or type, which have changed.
DELETE FROM vectors WHERE passage IN (SELECT id FROM observations WHERE entity = ? AND until IS NULL)
    AND template IN (
        SELECT id FROM templates WHERE template = '{text}' OR template LIKE '%{name}%' OR template LIKE '%{type}%'
    );

-- name: vectors_missing_since
-- The observations of entities changed since a change (?1) that have no vector of a model (?2) and template (?3).
SELECT o.id FROM cards AS c CROSS JOIN observations AS o ON o.entity = c.entity AND o.until IS NULL
WHERE c.id > (SELECT coalesce(max(last_row), 0) FROM changes WHERE id = ?1) AND c.until IS NULL AND NOT EXISTS (
    SELECT 1 FROM vectors AS v WHERE v.passage = o.id AND v.template = ?3 AND v.model = ?2
);

-- name: living_passages
-- Those of the passages (a JSON array of ids) that live.
SELECT c.id FROM json_each(?1) AS wanted CROSS JOIN cards AS c ON c.id = wanted.value AND c.until IS NULL
UNION ALL
SELECT o.id FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value AND o.until IS NULL
UNION ALL
SELECT n.id FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.id = wanted.value AND n.until IS NULL;

-- name: vectors_by_passage
-- The vectors of some passages (a JSON array of ids).
SELECT v.passage, v.vector FROM json_each(?3) AS wanted
CROSS JOIN vectors AS v ON v.passage = wanted.value AND v.template = ?2 AND v.model = ?1
CROSS JOIN models AS m ON m.id = v.model AND length(v.vector) IN (2 * m.dimension, 4 * m.dimension);

-- name: observation_owners
-- The living observations with the names of their entities, entity by entity.
SELECT o.id, c.name FROM cards AS c NOT INDEXED CROSS JOIN observations AS o ON o.entity = c.entity AND o.until IS NULL
WHERE c.until IS NULL;

-- name: passages_within
-- The passages of some names (a JSON array), some types (likewise), a period and all of some tags; NULL allows any. Named
-- cards are looked up: with one OR for both cases every card would be read.
WITH own AS NOT MATERIALIZED (
    SELECT id, entity, type, tags, created_at FROM cards WHERE until IS NULL AND ?1 IS NULL
    UNION ALL
    SELECT id, entity, type, tags, created_at FROM cards WHERE until IS NULL AND name IN (SELECT value FROM json_each(?1))
)
SELECT c.id FROM own AS c
WHERE (?2 IS NULL OR c.type IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR c.created_at >= ?3) AND (?4 IS NULL OR c.created_at < ?4)
    AND (?5 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?5) AS tag WHERE tag.value NOT IN (SELECT value FROM json_each(coalesce(c.tags, '[]')))))
UNION ALL
SELECT o.id FROM own AS c CROSS JOIN observations AS o ON o.entity = c.entity AND o.until IS NULL
WHERE (?2 IS NULL OR c.type IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR coalesce(o.valid_at, o.created_at) >= ?3) AND (?4 IS NULL OR coalesce(o.valid_at, o.created_at) < ?4)
    AND (?5 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?5) AS tag WHERE tag.value NOT IN (SELECT value FROM json_each(coalesce(c.tags, '[]')))))
UNION ALL
SELECT n.id FROM notes AS n
WHERE n.until IS NULL AND (?1 IS NULL OR n.key IN (SELECT value FROM json_each(?1)))
    AND (?2 IS NULL OR 'note' IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR n.updated_at >= ?3) AND (?4 IS NULL OR n.updated_at < ?4)
    AND (?5 IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(?5) AS tag WHERE tag.value NOT IN (SELECT value FROM json_each(coalesce(n.tags, '[]')))));

-- name: pending_vectors
-- Living observations and notes between two row ids without a vector of the model, the newest first, with what a template
-- may use: text, name, type and time; and whether it is a fact that was noted, not said (`Passage.is_turn`).
SELECT id, text, name, type, at, is_noted FROM (
    SELECT * FROM (
        SELECT o.id, o.text, c.name, c.type, coalesce(o.valid_at, o.created_at) AS at,
            c.type <> 'conversation' AND coalesce(o.valid_at, 0) % 86400000000 = 0 AS is_noted
        FROM observations AS o NOT INDEXED
        CROSS JOIN cards AS c ON c.entity = o.entity AND c.until IS NULL
        WHERE o.id > ?4 AND o.id < ?5 AND o.until IS NULL AND NOT EXISTS (
            SELECT 1 FROM vectors AS v WHERE v.passage = o.id AND v.template = ?2 AND v.model = ?1
        )
        ORDER BY o.id DESC LIMIT ?3
    )
    UNION ALL
    SELECT * FROM (
        SELECT n.id, n.key || ': ' || n.text, n.key, 'note', n.updated_at, 0 FROM notes AS n NOT INDEXED
        WHERE n.id > ?4 AND n.id < ?5 AND n.until IS NULL AND NOT EXISTS (
            SELECT 1 FROM vectors AS v WHERE v.passage = n.id AND v.template = ?2 AND v.model = ?1
        )
        ORDER BY n.id DESC LIMIT ?3
    )
)
ORDER BY id DESC LIMIT ?3;

-- name: count_embeddable
-- How many living passages should have a vector.
SELECT (SELECT count(*) FROM observations INDEXED BY observations_living WHERE until IS NULL)
    + (SELECT count(*) FROM notes INDEXED BY notes_living WHERE until IS NULL);

-- name: count_vectors
-- How many living observations and notes have a vector of the model.
SELECT count(*) FROM vectors AS v
WHERE v.model = ?1 AND v.template = ?2 AND (
    EXISTS (SELECT 1 FROM observations AS o WHERE o.id = v.passage AND o.until IS NULL)
    OR EXISTS (SELECT 1 FROM notes AS n WHERE n.id = v.passage AND n.until IS NULL)
);

-- name: lease_holder
-- The server that holds a lease. It may have been killed.
SELECT server FROM leases WHERE name = ?;

-- name: take_lease
-- Take a lease that is free, expired or already held by the server; return a row if that worked.
INSERT INTO leases (name, server, expires_at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET server = excluded.server, expires_at = excluded.expires_at
WHERE server = excluded.server OR expires_at <= ?4
RETURNING server;

-- name: release_lease
-- Give up a lease.
DELETE FROM leases WHERE name = ? AND server = ?;

-- name: record_migration
-- Record when a migration was applied.
INSERT INTO migrations (number, applied_at) VALUES (?, datetime('now'));

-- name: count_tables
-- Whether a file without our version number is empty or another program's.
SELECT count(*) FROM sqlite_schema;

-- name: table_names
-- The names of the tables, which tell whose file it is.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: count_orphans
-- Living observations whose entity has no living card. Only damage makes them.
SELECT count(*) FROM observations AS o
WHERE o.until IS NULL AND NOT EXISTS (SELECT 1 FROM cards AS c WHERE c.entity = o.entity AND c.until IS NULL);

-- name: count_unindexed
-- Living passages that a search by words does not find, and indexed ones that do not live. Only damage makes them.
SELECT
    (SELECT count(*) FROM cards WHERE until IS NULL AND id NOT IN (SELECT id FROM words_docsize))
    + (SELECT count(*) FROM observations WHERE until IS NULL AND id NOT IN (SELECT id FROM words_docsize))
    + (SELECT count(*) FROM notes WHERE until IS NULL AND id NOT IN (SELECT id FROM words_docsize)),
    (SELECT count(*) FROM words_docsize)
    - (SELECT count(*) FROM cards WHERE until IS NULL AND id IN (SELECT id FROM words_docsize))
    - (SELECT count(*) FROM observations WHERE until IS NULL AND id IN (SELECT id FROM words_docsize))
    - (SELECT count(*) FROM notes WHERE until IS NULL AND id IN (SELECT id FROM words_docsize));

-- name: foreign_vault
-- What another program's vault holds.
SELECT key, content, tags, embedding, created_at, updated_at FROM vault_memories ORDER BY id;

-- name: foreign_columns
-- The tables of another program's file that are neither views nor virtual, which may need what only that program has.
SELECT tables.name, columns.name FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns
WHERE tables.schema = 'main' AND tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%'
ORDER BY tables.name, columns.cid;

-- name: foreign_sessions
-- What another program's sessions hold.
SELECT session_id, key, content, tags, created_at FROM session_memories ORDER BY id;

-- name: model_dimension
-- How long a model's vectors are.
SELECT dimension FROM models WHERE id = ?;

-- name: schema_pages
-- The pages that list the tables of a new store, for the salvage, as are the following.
SELECT pageno FROM dbstat WHERE name = 'sqlite_schema';

-- name: last_changed_row
-- The last row id that a change gave out.
SELECT last_row FROM changes ORDER BY id DESC LIMIT 1;

-- name: last_changes
-- The last id of the table.
SELECT max(id) FROM changes;

-- name: last_entities
-- The last id of the table.
SELECT max(id) FROM entities;

-- name: last_cards
-- The last id of the table.
SELECT max(id) FROM cards;

-- name: last_observations
-- The last id of the table.
SELECT max(id) FROM observations;

-- name: last_relations
-- The last id of the table.
SELECT max(id) FROM relations;

-- name: last_notes
-- The last id of the table.
SELECT max(id) FROM notes;

-- name: last_vectors
-- The last id of the table.
SELECT max(id) FROM vectors;

-- name: card_columns
-- The columns of the table of cards.
SELECT name FROM pragma_table_info('cards');

-- name: salvage_changes
-- Changes by id alone. Texts come as bytes: damaged ones may not be UTF-8.
SELECT c.id, c.at, CAST(a.name AS BLOB), CAST(a.server AS BLOB), CAST(c.operation AS BLOB), c.last_row
FROM changes AS c NOT INDEXED LEFT JOIN actors AS a ON a.id = c.actor WHERE c.id BETWEEN ? AND ? ORDER BY c.id;

-- name: salvage_entities
-- Identities by id alone, with UUIDs as text.
SELECT id, iif(typeof(uid) = 'blob' AND length(uid) = 16,
    lower(format('%s-%s-%s-%s-%s', hex(substr(uid, 1, 4)), hex(substr(uid, 5, 2)), hex(substr(uid, 7, 2)), hex(substr(uid, 9, 2)), hex(substr(uid, 11)))),
    CAST(uid AS BLOB)), next_ordinal, updated_at, touched
FROM entities NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: salvage_cards
-- Cards by id alone.
SELECT id, entity, CAST(name AS BLOB), CAST(type AS BLOB), CAST(summary AS BLOB), summary_at, CAST(tags AS BLOB), created_at,
    CAST(aliases AS BLOB), due, CAST(status AS BLOB), expires, since, until
FROM cards NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: salvage_observations
-- Observations by id alone.
SELECT id, entity, ordinal, CAST(text AS BLOB), created_at, valid_at, CAST(source AS BLOB), expires, CAST(author AS BLOB), successor, since, until
FROM observations NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: salvage_relations
-- Relations by id alone.
SELECT id, CAST(source AS BLOB), CAST(target AS BLOB), CAST(type AS BLOB), created_at, since, until
FROM relations NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: salvage_notes
-- Vault notes by id alone.
SELECT id, CAST(key AS BLOB), CAST(text AS BLOB), CAST(tags AS BLOB), created_at, updated_at, since, until
FROM notes NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: client_models
-- The models of vectors that clients supplied: they are salvaged, and others are made again.
SELECT id FROM models NOT INDEXED WHERE CAST(url AS BLOB) = CAST('client' AS BLOB);

-- name: salvage_vectors
-- Vectors by id alone.
SELECT id, passage, model, vector FROM vectors NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id;

-- name: lineage
-- What the last commit wrote to identify its file and log.
SELECT state FROM lineage;

-- name: update_lineage
-- What this commit writes.
UPDATE lineage SET state = ?;
