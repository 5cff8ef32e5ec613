-- name: known_names
-- Which of the names (a JSON array) are taken.
SELECT e.name FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.name = wanted.value AND e.deleted_at IS NULL;

-- name: entity_ids
-- The rows behind names (a JSON array), to change them.
SELECT e.name, e.id FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.name = wanted.value AND e.deleted_at IS NULL;

-- name: entity_named
-- The one entity of that name: the shortest way to the commonest read.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities WHERE name = ? AND deleted_at IS NULL;

-- name: look_up
-- One entity, its observations and its relations at once: the commonest read is one statement, one moment.
SELECT 0, id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities WHERE name = ?1 AND deleted_at IS NULL
UNION ALL
SELECT 1, o.id, o.content, o.created_at, o.valid_at, NULL, NULL, NULL, NULL, NULL, NULL
FROM (SELECT id << 24 AS first, (id + 1) << 24 AS last FROM entities WHERE name = ?1 AND deleted_at IS NULL LIMIT 1) AS e
CROSS JOIN observations AS o WHERE o.id > e.first AND o.id < e.last AND o.deleted_at IS NULL
UNION ALL
SELECT 2, id, source, target, type, created_at, NULL, NULL, NULL, NULL, NULL
FROM relations WHERE source = ?1 AND deleted_at IS NULL
UNION ALL
SELECT 2, id, source, target, type, created_at, NULL, NULL, NULL, NULL, NULL
FROM relations WHERE target = ?1 AND source <> ?1 AND deleted_at IS NULL;

-- name: entities_named
-- The entities with these names (a JSON array), oldest first.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities
WHERE deleted_at IS NULL AND name IN (SELECT value FROM json_each(?))
ORDER BY id;

-- name: entities_by_id
-- The entities with these row ids (a JSON array), oldest first.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities
WHERE deleted_at IS NULL AND id IN (SELECT value FROM json_each(?))
ORDER BY id;

-- name: entities_all
-- Every living entity, oldest first.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities WHERE deleted_at IS NULL ORDER BY id;

-- name: observations_of
-- One entity's observations: a range of ids, in ordinal order.
SELECT id, content, created_at, valid_at FROM observations WHERE id > ? AND id < ? AND deleted_at IS NULL ORDER BY id;

-- name: observations_of_many
-- The observations of these entities (a JSON array of row ids), entity by entity as they are given.
-- CROSS JOIN, here and below, because the planner must start from what is wanted, not from the table.
SELECT o.id, o.content, o.created_at, o.valid_at
FROM json_each(?) AS wanted CROSS JOIN observations AS o
WHERE o.id > wanted.value << 24 AND o.id < (wanted.value + 1) << 24 AND o.deleted_at IS NULL;

-- name: observations_all
-- Every living observation, entity by entity.
SELECT id, content, created_at, valid_at FROM observations WHERE deleted_at IS NULL ORDER BY id;

-- name: relations_of
-- The relations of one name, in no order: an index range each way, and no table to remove doubles in.
SELECT id, source, target, type, created_at FROM relations WHERE source = ?1 AND deleted_at IS NULL
UNION ALL
SELECT id, source, target, type, created_at FROM relations
WHERE target = ?1 AND source <> ?1 AND deleted_at IS NULL;

-- name: relations_of_many
-- The relations that touch one of these names (a JSON array), in no order; one that touches two comes twice.
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?1) AS wanted CROSS JOIN relations AS r ON r.source = wanted.value AND r.deleted_at IS NULL
UNION ALL
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?1) AS wanted CROSS JOIN relations AS r ON r.target = wanted.value AND r.deleted_at IS NULL;

-- name: relations_all
-- Every living relation, oldest first.
SELECT id, source, target, type, created_at FROM relations WHERE deleted_at IS NULL ORDER BY id;

-- name: relations_keyed
-- The relations with these keys (a JSON array of [source, target, type]).
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM json_each(?) AS wanted CROSS JOIN relations AS r
    ON r.source = wanted.value ->> 0 AND r.target = wanted.value ->> 1 AND r.type = wanted.value ->> 2
    AND r.deleted_at IS NULL
ORDER BY r.id;

-- name: entities_page
-- A stretch of the entities, or of those of one type, oldest first; -1 is no limit.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at
FROM entities WHERE deleted_at IS NULL AND (?1 IS NULL OR type = ?1)
ORDER BY id LIMIT ?2 OFFSET ?3;

-- name: relations_from
-- Relations that start at a name, perhaps with a given end and type.
SELECT id, source, target, type, created_at FROM relations
WHERE source = ?1 AND (?2 IS NULL OR target = ?2) AND (?3 IS NULL OR type = ?3) AND deleted_at IS NULL
ORDER BY id;

-- name: relations_to
-- Relations that end at a name, perhaps of a given type.
SELECT id, source, target, type, created_at FROM relations
WHERE target = ?1 AND (?2 IS NULL OR type = ?2) AND deleted_at IS NULL
ORDER BY id;

-- name: relations_typed
-- Relations of a type, or all.
SELECT id, source, target, type, created_at FROM relations
WHERE (?1 IS NULL OR type = ?1) AND deleted_at IS NULL
ORDER BY id;

-- name: entity_types
-- The types of the living, the commonest first.
SELECT type, count(*) FROM entities WHERE deleted_at IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: relation_types
-- The types of the living, the commonest first.
SELECT type, count(*) FROM relations WHERE deleted_at IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: distinct_texts
-- How many different texts there are, and their bytes.
SELECT count(*), coalesce(sum(octet_length(text)), 0) FROM (
    SELECT name AS text FROM entities WHERE deleted_at IS NULL
    UNION SELECT type FROM entities WHERE deleted_at IS NULL
    UNION SELECT content FROM observations WHERE deleted_at IS NULL
    UNION SELECT source FROM relations WHERE deleted_at IS NULL
    UNION SELECT target FROM relations WHERE deleted_at IS NULL
    UNION SELECT type FROM relations WHERE deleted_at IS NULL
);

-- name: counts
-- How much is alive.
SELECT
    (SELECT count(*) FROM entities WHERE deleted_at IS NULL),
    (SELECT count(*) FROM observations WHERE deleted_at IS NULL),
    (SELECT count(*) FROM relations WHERE deleted_at IS NULL);

-- name: weight
-- The bytes of all texts, and ?1 for each row; deleted rows too, so that looking at ?2 of a kind is enough.
SELECT coalesce(sum(bytes + ?1), 0) FROM (
    SELECT * FROM (SELECT octet_length(name) + octet_length(type) + octet_length(coalesce(summary, '')) + octet_length(tags)
        AS bytes FROM entities LIMIT ?2)
    UNION ALL
    SELECT * FROM (SELECT octet_length(content) FROM observations LIMIT ?2)
    UNION ALL
    SELECT * FROM (SELECT octet_length(source) + octet_length(target) + octet_length(type) FROM relations LIMIT ?2)
);

-- name: last_entity
-- The newest row id, to number the next ones.
SELECT coalesce(max(id), 0) FROM entities;

-- name: insert_entity
-- A new entity, its row id chosen by the writer.
INSERT INTO entities
    (id, uid, name, type, summary, summary_at, tags, next_ordinal, created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: update_entity
-- What may change about an entity that stays.
UPDATE entities SET type = ?, summary = ?, summary_at = ?, tags = ?, updated_at = ? WHERE id = ?;

-- name: touch_entity
-- Its observations changed: when, and the ordinal the next one gets.
UPDATE entities SET updated_at = ?, next_ordinal = max(next_ordinal, ?) WHERE id = ?;

-- name: delete_entity
-- Out of sight, not gone.
UPDATE entities SET deleted_at = ? WHERE id = ?;

-- name: insert_observation
-- A new observation; one that replaces another takes over its ordinal and its row.
INSERT INTO observations (id, content, created_at, valid_at) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    content = excluded.content, created_at = excluded.created_at, valid_at = excluded.valid_at, deleted_at = NULL;

-- name: delete_observation
-- Out of sight, not gone.
UPDATE observations SET deleted_at = ? WHERE id = ?;

-- name: delete_observations_of
-- All of one entity: a range of ids.
UPDATE observations SET deleted_at = ? WHERE id > ? AND id < ? AND deleted_at IS NULL;

-- name: insert_relation
-- A new relation.
INSERT INTO relations (source, target, type, created_at) VALUES (?, ?, ?, ?);

-- name: delete_relation
-- Out of sight, not gone.
UPDATE relations SET deleted_at = ? WHERE source = ? AND target = ? AND type = ? AND deleted_at IS NULL;

-- name: insert_trigrams
-- Index a row's folded text.
INSERT INTO trigrams (rowid, content) VALUES (?, ?);

-- name: delete_trigrams
-- Forget a row's folded text.
DELETE FROM trigrams WHERE rowid = ?;

-- name: postpone_index
-- A row that is to be indexed later.
INSERT OR IGNORE INTO unindexed (id) VALUES (?);

-- name: delete_unindexed
-- A row that is not to be indexed after all.
DELETE FROM unindexed WHERE id = ?;

-- name: count_unindexed
-- How many rows wait.
SELECT count(*) FROM unindexed;

-- name: unindexed
-- The rows that wait, from one row id to another.
SELECT id FROM unindexed WHERE id BETWEEN ? AND ?;

-- name: unindexed_texts
-- What is to be indexed of the rows that wait: name and type of entities, the content of observations, both of notes.
SELECT waiting.id, e.name, e.type, NULL FROM unindexed AS waiting CROSS JOIN entities AS e ON e.id = waiting.id >> 24
WHERE waiting.id & 16777215 = 0 AND e.deleted_at IS NULL
UNION ALL
SELECT waiting.id, NULL, NULL, o.content FROM unindexed AS waiting CROSS JOIN observations AS o ON o.id = waiting.id
WHERE o.deleted_at IS NULL
UNION ALL
SELECT waiting.id, n.key, NULL, n.content FROM unindexed AS waiting CROSS JOIN notes AS n ON n.id = -waiting.id
WHERE n.session = ''
ORDER BY 1;

-- name: clear_unindexed
-- Nothing waits any more.
DELETE FROM unindexed;

-- name: merge_trigrams
-- Join index segments, for so many pages of work.
INSERT INTO trigrams (trigrams, rank) VALUES ('merge', ?);

-- name: insert_words
-- Index a row's words.
INSERT INTO words (rowid, name, entity_type, content, parts) VALUES (?, ?, ?, ?, ?);

-- name: delete_words
-- Forget a row's words.
DELETE FROM words WHERE rowid = ?;

-- name: merge_words
-- Join index segments, for so many pages of work.
INSERT INTO words (words, rank) VALUES ('merge', ?);

-- name: word_sizes
-- How many rows and words are indexed: the index keeps count in its first record, which is quicker than counting.
SELECT block FROM words_data WHERE id = 1;

-- name: word_frequencies
-- How many rows have each of the terms (a JSON array).
SELECT t.term, t.doc FROM json_each(?) AS wanted CROSS JOIN word_terms AS t ON t.term = wanted.value;

-- name: words_between
-- The indexed terms from one to before another, at most so many.
SELECT term FROM word_terms WHERE term >= ? AND term < ? LIMIT ?;

-- name: match_words
-- Rows that match the expression, the best so many, with their texts: entities, observations and the vault's notes.
WITH best AS MATERIALIZED (SELECT rowid AS id FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?)
SELECT b.id, coalesce(e.name, n.key), coalesce(e.type, 'note'), coalesce(o.content, n.content, ''),
    coalesce(o.created_at, e.created_at, n.updated_at), coalesce(o.valid_at, 0)
FROM best AS b LEFT JOIN entities AS e ON e.id = b.id >> 24 LEFT JOIN observations AS o ON o.id = b.id
LEFT JOIN notes AS n ON n.id = -b.id AND n.session = ''
WHERE e.id IS NOT NULL OR n.id IS NOT NULL;

-- name: match_words_of
-- The same among the rows from one id to another: those of one entity, or one note.
WITH best AS MATERIALIZED (
    SELECT rowid AS id FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank LIMIT ?
)
SELECT b.id, coalesce(e.name, n.key), coalesce(e.type, 'note'), coalesce(o.content, n.content, ''),
    coalesce(o.created_at, e.created_at, n.updated_at), coalesce(o.valid_at, 0)
FROM best AS b LEFT JOIN entities AS e ON e.id = b.id >> 24 LEFT JOIN observations AS o ON o.id = b.id
LEFT JOIN notes AS n ON n.id = -b.id AND n.session = ''
WHERE e.id IS NOT NULL OR n.id IS NOT NULL;

-- name: match_words_within
-- The same among the rows of some names (a JSON array), some types (likewise) and a time.
WITH best AS MATERIALIZED (
    SELECT w.rowid AS id FROM words AS w LEFT JOIN entities AS e ON e.id = w.rowid >> 24
    LEFT JOIN observations AS o ON o.id = w.rowid LEFT JOIN notes AS n ON n.id = -w.rowid AND n.session = ''
    WHERE w.words MATCH ?1
        AND (?3 IS NULL OR coalesce(e.name, n.key) IN (SELECT value FROM json_each(?3)))
        AND (?4 IS NULL OR coalesce(e.type, 'note') IN (SELECT value FROM json_each(?4)))
        AND (?5 IS NULL OR coalesce(nullif(o.valid_at, 0), o.created_at, e.created_at, n.updated_at) >= ?5)
        AND (?6 IS NULL OR coalesce(nullif(o.valid_at, 0), o.created_at, e.created_at, n.updated_at) < ?6)
    ORDER BY w.rank LIMIT ?2
)
SELECT b.id, coalesce(e.name, n.key), coalesce(e.type, 'note'), coalesce(o.content, n.content, ''),
    coalesce(o.created_at, e.created_at, n.updated_at), coalesce(o.valid_at, 0)
FROM best AS b LEFT JOIN entities AS e ON e.id = b.id >> 24 LEFT JOIN observations AS o ON o.id = b.id
LEFT JOIN notes AS n ON n.id = -b.id AND n.session = ''
WHERE e.id IS NOT NULL OR n.id IS NOT NULL;

-- name: match_names
-- Names of the entities whose own rows match the expression, the best so many. By bm25 and not by rank, which would be
-- worked out for observations too, to throw them away.
WITH best AS MATERIALIZED (
    SELECT rowid AS id FROM words WHERE words MATCH ? AND rowid > 0 AND rowid & 0xFFFFFF = 0
    ORDER BY bm25(words), rowid LIMIT ?
)
SELECT e.name FROM best AS b CROSS JOIN entities AS e ON e.id = b.id >> 24;

-- name: observation_counts
-- How many living observations entities (a JSON array of names) have.
SELECT e.name, (SELECT count(*) FROM observations AS o WHERE o.id > e.id << 24 AND o.id < (e.id + 1) << 24 AND o.deleted_at IS NULL)
FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.name = wanted.value AND e.deleted_at IS NULL;

-- name: neighbour_ids
-- For observations (a JSON array of [entity, ordinal]) the two written before and the one after with the same valid time.
SELECT e.name, o.id & 0xFFFFFF,
    (SELECT id FROM (
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at = o.created_at AND n.id < o.id ORDER BY n.id DESC LIMIT 2)
        UNION ALL
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at < o.created_at ORDER BY n.created_at DESC, n.id DESC LIMIT 2)
    ) LIMIT 1 OFFSET 0),
    (SELECT id FROM (
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at = o.created_at AND n.id < o.id ORDER BY n.id DESC LIMIT 2)
        UNION ALL
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at < o.created_at ORDER BY n.created_at DESC, n.id DESC LIMIT 2)
    ) LIMIT 1 OFFSET 1),
    (SELECT id FROM (
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at = o.created_at AND n.id > o.id ORDER BY n.id  LIMIT 2)
        UNION ALL
        SELECT * FROM (SELECT n.id FROM observations AS n WHERE n.deleted_at IS NULL AND n.valid_at = o.valid_at
            AND n.created_at > o.created_at ORDER BY n.created_at , n.id  LIMIT 2)
    ) LIMIT 1 OFFSET 0)
FROM json_each(?) AS wanted
CROSS JOIN entities AS e ON e.name = wanted.value ->> 0 AND e.deleted_at IS NULL
CROSS JOIN observations AS o ON o.id = (e.id << 24) + (wanted.value ->> 1);

-- name: observations_between
-- The newest observations from one time to before another: their valid time or, without one, when they were written.
SELECT timed.id, e.name, e.type, timed.content, timed.created_at, timed.valid_at
FROM (
    SELECT * FROM (
        SELECT id, content, created_at, valid_at, valid_at AS at FROM observations
        WHERE deleted_at IS NULL AND valid_at >= max(?1, 1) AND valid_at < ?2
        ORDER BY valid_at DESC, created_at DESC, id DESC LIMIT ?3
    )
    UNION ALL
    SELECT * FROM (
        SELECT id, content, created_at, valid_at, created_at AS at FROM observations
        WHERE deleted_at IS NULL AND valid_at = 0 AND created_at >= ?1 AND created_at < ?2
        ORDER BY created_at DESC, id DESC LIMIT ?3
    )
) AS timed CROSS JOIN entities AS e ON e.id = timed.id >> 24
ORDER BY timed.at DESC, timed.created_at DESC, timed.id DESC LIMIT ?3;

-- name: passages_at
-- The living observations and the vault's notes with these row ids (a JSON array).
SELECT o.id, e.name, e.type, o.content, o.created_at, o.valid_at
FROM json_each(?1) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value AND o.deleted_at IS NULL
CROSS JOIN entities AS e ON e.id = o.id >> 24
UNION ALL
SELECT -n.id, n.key, 'note', n.content, n.updated_at, 0
FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.id = -wanted.value AND n.session = '';

-- name: models_all
-- The models that vectors are of, oldest first.
SELECT id, identity, url, dimension FROM models ORDER BY id;

-- name: model_of
-- The model with that identity.
SELECT id, identity, url, dimension FROM models WHERE identity = ?;

-- name: insert_model
-- A model whose vectors will be kept; a known one may be loaded from elsewhere now.
INSERT INTO models (identity, url, dimension) VALUES (?, ?, ?) ON CONFLICT (identity) DO UPDATE SET url = excluded.url;

-- name: delete_model
-- A model that is no longer used.
DELETE FROM models WHERE id = ?;

-- name: delete_vectors
-- Some vectors of a model, so that nobody who writes waits for all of them.
DELETE FROM vectors WHERE id IN (SELECT id FROM vectors WHERE model = ? LIMIT ?) RETURNING id;

-- name: queue_all
-- Every living observation, and every note in the vault, that has no vector of the model is to be embedded.
INSERT OR IGNORE INTO unembedded (model, observation)
SELECT ?1, o.id FROM observations AS o
WHERE o.deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.observation = o.id AND v.model = ?1)
UNION ALL
SELECT ?1, -n.id FROM notes AS n
WHERE n.owner = '' AND n.session = '' AND NOT EXISTS (SELECT 1 FROM vectors AS v WHERE v.observation = -n.id AND v.model = ?1);

-- name: queued
-- What the model has to embed next, at most so many: notes, then observations, of each the newest first. What was deleted
-- meanwhile has no text.
WITH
    notes_due AS (SELECT observation FROM unembedded WHERE model = ?1 AND observation < 0 ORDER BY observation LIMIT ?2),
    told_due AS (SELECT observation FROM unembedded WHERE model = ?1 AND observation > 0 ORDER BY observation DESC LIMIT ?2)
SELECT u.observation, coalesce(o.content, n.key || ': ' || n.content)
FROM (SELECT * FROM notes_due UNION ALL SELECT * FROM told_due LIMIT ?2) AS u
LEFT JOIN observations AS o ON o.id = u.observation AND o.deleted_at IS NULL
LEFT JOIN notes AS n ON n.id = -u.observation AND n.session = '';

-- name: unqueue
-- It is embedded, or gone.
DELETE FROM unembedded WHERE model = ? AND observation = ?;

-- name: unqueue_all
-- A model that is no longer used has nothing to embed.
DELETE FROM unembedded WHERE model = ?;

-- name: insert_vector
-- A vector, if the observation or note still has the text it was made from.
INSERT INTO vectors (observation, model, vector)
SELECT told.id, m.id, ?2 FROM (
    SELECT id FROM observations WHERE id = ?3 AND content = ?4 AND deleted_at IS NULL
    UNION ALL
    SELECT -id FROM notes WHERE id = -?3 AND session = '' AND key || ': ' || content = ?4
) AS told CROSS JOIN models AS m ON m.id = ?1
WHERE true
ON CONFLICT (observation, model) DO NOTHING;

-- name: vectors_state
-- The last vector written and the last one gone: whether there is anything new.
SELECT (SELECT coalesce(max(id), 0) FROM vectors), (SELECT coalesce(max(id), 0) FROM vectors_gone);

-- name: vectors_since
-- The vectors of a model that were written after one, at most so many, with the times of their observations.
SELECT v.id, v.observation, coalesce(o.valid_at, 0), coalesce(o.created_at, 0), v.vector
FROM vectors AS v LEFT JOIN observations AS o ON o.id = v.observation
WHERE v.id > ?2 AND v.model = ?1 AND (o.id IS NOT NULL OR v.observation < 0) ORDER BY v.id LIMIT ?3;

-- name: vectors_gone_since
-- The observations whose vectors of the model went after one; nothing for those that have another by now.
SELECT g.id, CASE WHEN v.id IS NULL THEN g.observation END
FROM vectors_gone AS g LEFT JOIN vectors AS v ON v.observation = g.observation AND v.model = ?1
WHERE g.id > ?2 AND g.model = ?1 ORDER BY g.id;

-- name: forgotten_of
-- Up to where what went of the model's vectors is no longer listed.
SELECT forgotten FROM models WHERE id = ?;

-- name: places_of
-- Everything that has a vector of the model.
SELECT observation FROM vectors WHERE model = ?;

-- name: forget_gone
-- Of a model that is no longer used nobody holds vectors.
DELETE FROM vectors_gone WHERE model = ?;

-- name: gone_bounds
-- The first and the last that is listed: how many they are at most.
SELECT (SELECT coalesce(min(id), 0) FROM vectors_gone), (SELECT coalesce(max(id), 0) FROM vectors_gone);

-- name: mark_forgotten
-- Who has not seen this number must look which vectors there are.
UPDATE models SET forgotten = ?;

-- name: forget_gone_until
-- Those that every process has seen by now, or will find out without.
DELETE FROM vectors_gone WHERE id <= ?;

-- name: vector_counts
-- How many observations and notes have a vector of the model, and how many there are.
SELECT (SELECT count(*) FROM vectors WHERE model = ?),
    (SELECT count(*) FROM observations WHERE deleted_at IS NULL)
    + coalesce((SELECT count FROM note_counts WHERE owner = '' AND session = ''), 0);

-- name: groups_named
-- Row ids of the entities of these names (a JSON array), and the negative ones of the vault's notes with these keys.
SELECT e.id FROM json_each(?1) AS wanted CROSS JOIN entities AS e ON e.name = wanted.value AND e.deleted_at IS NULL
UNION ALL
SELECT -n.id FROM json_each(?1) AS wanted
CROSS JOIN notes AS n ON n.owner = '' AND n.session = '' AND n.key = wanted.value;

-- name: groups_within
-- The same of some names (a JSON array, or nothing) and some types (a JSON array).
SELECT id FROM entities
WHERE deleted_at IS NULL AND (?1 IS NULL OR name IN (SELECT value FROM json_each(?1)))
    AND type IN (SELECT value FROM json_each(?2))
UNION ALL
SELECT -id FROM notes
WHERE owner = '' AND session = '' AND (?1 IS NULL OR key IN (SELECT value FROM json_each(?1)))
    AND 'note' IN (SELECT value FROM json_each(?2));

-- name: insert_change
-- The change log's row for this transaction.
INSERT INTO changes (at, actor, operation, before_state, after_state) VALUES (?, ?, ?, ?, ?);

-- name: changes_since
-- The change log after an id, oldest first.
SELECT id, at, actor, operation, before_state, after_state FROM changes WHERE id > ? ORDER BY id LIMIT ?;

-- name: match_trigrams
-- Rows that have the trigrams, from one row id to another: of entities or of notes. At most so many.
SELECT rowid FROM trigrams WHERE trigrams MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?;

-- name: trigrams_starting
-- The indexed trigrams between two texts, at most so many.
SELECT term FROM trigram_terms WHERE term >= ? AND term < ? LIMIT ?;

-- name: texts_of
-- The texts behind a match, by entity: names and types of entities, contents of observations (JSON arrays of ids).
SELECT e.id, e.name FROM json_each(?1) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
UNION ALL
SELECT e.id, e.type FROM json_each(?1) AS wanted CROSS JOIN entities AS e ON e.id = wanted.value
UNION ALL
SELECT o.id >> 24, o.content FROM json_each(?2) AS wanted CROSS JOIN observations AS o ON o.id = wanted.value;

-- name: texts_of_all
-- Every text by entity, for queries so short that nearly everything has them.
SELECT id, name FROM entities WHERE deleted_at IS NULL
UNION ALL
SELECT id, type FROM entities WHERE deleted_at IS NULL
UNION ALL
SELECT id >> 24, content FROM observations WHERE deleted_at IS NULL;

-- name: texts_of_notes
-- The texts of the vault's notes, or of some of them (a JSON array of ids).
SELECT id, key FROM notes
WHERE owner = '' AND session = '' AND (?1 IS NULL OR id IN (SELECT value FROM json_each(?1)))
UNION ALL
SELECT id, content FROM notes
WHERE owner = '' AND session = '' AND (?1 IS NULL OR id IN (SELECT value FROM json_each(?1)));

-- name: record_migration
-- When a step of the schema was taken.
INSERT INTO migrations (number, applied_at) VALUES (?, datetime('now'));

-- name: count_tables
-- Whether a file without our version number is empty or somebody else's.
SELECT count(*) FROM sqlite_schema;

-- name: count_orphans
-- Living observations that no read sees: their entity is gone. Only damage makes them.
SELECT count(*) FROM observations AS o
WHERE o.deleted_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM entities AS e WHERE e.id = o.id >> 24 AND e.deleted_at IS NULL);

-- name: count_lost_notes
-- Notes of the vault that no search by words finds, and rows of the words index whose note is not there. Only damage
-- makes them.
SELECT
    (SELECT count(*) FROM notes AS n
    WHERE n.owner = '' AND n.session = '' AND NOT EXISTS (SELECT 1 FROM words_docsize AS w WHERE w.id = -n.id)
        AND NOT EXISTS (SELECT 1 FROM unindexed AS u WHERE u.id = -n.id)),
    (SELECT count(*) FROM words_docsize AS w
    WHERE w.id < 0 AND NOT EXISTS (SELECT 1 FROM notes AS n WHERE n.id = -w.id AND n.session = ''));

-- name: last_change
-- Where the change log ends: the number of a change just made, or the point from which to follow it.
SELECT coalesce(max(id), 0) FROM changes;

-- name: note_keyed
-- One note with its vector, to change it.
SELECT n.key, n.content, n.tags, n.owner, n.session, n.created_at, n.updated_at, coalesce(v.vector, x'')
FROM notes AS n LEFT JOIN note_vectors AS v ON v.note = n.id
WHERE n.owner = ?1 AND n.session = ?2 AND n.key = ?3;

-- name: notes_page
-- A stretch of a scope's notes without vectors, oldest first; -1 is no limit.
SELECT key, content, tags, owner, session, created_at, updated_at, x''
FROM notes WHERE owner = ?1 AND session = ?2 ORDER BY id LIMIT ?3 OFFSET ?4;

-- name: notes_like
-- Notes with their vectors, to delete them; NULL is any key and any time, an empty JSON array no tags.
SELECT n.key, n.content, n.tags, n.owner, n.session, n.created_at, n.updated_at, coalesce(v.vector, x'')
FROM notes AS n LEFT JOIN note_vectors AS v ON v.note = n.id
WHERE n.owner = ?1 AND n.session = ?2 AND (?3 IS NULL OR n.key = ?3) AND (?5 IS NULL OR n.created_at < ?5)
    AND (SELECT count(*) FROM note_tags AS t WHERE t.note = n.id AND t.tag IN (SELECT value FROM json_each(?4)))
        = json_array_length(?4)
ORDER BY n.id;

-- name: note_keys
-- The keys between two texts, for completion.
SELECT key FROM notes WHERE owner = ? AND session = ? AND key >= ? AND key < ? ORDER BY key;

-- name: notes_by_id
-- The notes behind a search (a JSON array of ids) in a scope, without vectors. An id may be another note's by now.
SELECT n.id, n.key, n.content, n.tags, n.owner, n.session, n.created_at, n.updated_at, x''
FROM json_each(?) AS wanted CROSS JOIN notes AS n ON n.id = wanted.value AND n.owner = ? AND n.session = ?;

-- name: notes_exactly
-- The notes whose key or whole content is the text.
SELECT id FROM notes WHERE owner = ?1 AND session = ?2 AND key = ?3
UNION
SELECT id FROM notes
WHERE owner = ?1 AND session = ?2 AND substr(content, 1, 40) = substr(?3, 1, 40) AND content = ?3;

-- name: count_notes
-- How many notes a scope has.
SELECT count FROM note_counts WHERE owner = ? AND session = ?;

-- name: notes_tagged
-- The ids of a scope's notes that have all of the different tags (a JSON array).
SELECT n.id FROM (
    SELECT t.note AS id FROM json_each(?3) AS wanted CROSS JOIN note_tags AS t ON t.tag = wanted.value
    GROUP BY t.note HAVING count(*) = json_array_length(?3)
) AS tagged CROSS JOIN notes AS n ON n.id = tagged.id
WHERE n.owner = ?1 AND n.session = ?2;

-- name: note_ids
-- The ids of a scope's notes, the newest first, at most so many.
SELECT id FROM notes WHERE owner = ? AND session = ? ORDER BY id DESC LIMIT ?;

-- name: match_vault
-- How well the vault's notes answer an expression, best first; less is better.
SELECT rowid, rank FROM vault_words WHERE vault_words MATCH ? ORDER BY rank, rowid DESC LIMIT ?;

-- name: match_vault_all
-- The same of every note that answers, in no order.
SELECT rowid, rank FROM vault_words WHERE vault_words MATCH ?;

-- name: make_session_words
-- An index for the notes of one session, in this connection's own memory.
CREATE VIRTUAL TABLE IF NOT EXISTS temp.session_words
USING fts5 (key, content, tags, content = '', contentless_delete = 1);

-- name: fill_session_words
-- Index the notes of one session: what others keep must not tell in the scores.
INSERT INTO temp.session_words (rowid, key, content, tags)
SELECT id, key, content, (SELECT group_concat(value, ' ') FROM json_each(notes.tags))
FROM notes WHERE owner = ? AND session = ?;

-- name: clear_session_words
-- The next search starts anew.
INSERT INTO temp.session_words (session_words) VALUES ('delete-all');

-- name: match_session
-- How well the indexed session's notes answer an expression; less is better.
SELECT rowid, rank FROM temp.session_words WHERE session_words MATCH ?;

-- name: vectors_of_scope
-- A scope's vectors of one length in bytes.
SELECT n.id, n.key, v.vector, v.norm FROM notes AS n CROSS JOIN note_vectors AS v ON v.note = n.id
WHERE n.owner = ?1 AND n.session = ?2 AND length(v.vector) = ?3;

-- name: vectors_keyed
-- The vectors of one length in bytes of the vault's notes with these keys (a JSON array).
SELECT n.id, n.key, v.vector, v.norm
FROM json_each(?1) AS wanted CROSS JOIN notes AS n ON n.owner = '' AND n.session = '' AND n.key = wanted.value
CROSS JOIN note_vectors AS v ON v.note = n.id
WHERE length(v.vector) = ?2;

-- name: count_vault_vectors
-- How many vectors of one length in bytes the vault has, to know how large they are together.
SELECT count(*) FROM note_vectors AS v CROSS JOIN notes AS n ON n.id = v.note
WHERE n.session = '' AND length(v.vector) = ?;

-- name: upsert_note
-- A new note, or new contents for the one with its key; gives its id.
INSERT INTO notes (owner, session, key, content, tags, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (owner, session, key)
DO UPDATE SET content = excluded.content, tags = excluded.tags, created_at = excluded.created_at,
    updated_at = excluded.updated_at
RETURNING id;

-- name: delete_note
-- Its tags, vectors and words go with it.
DELETE FROM notes WHERE owner = ? AND session = ? AND key = ?;

-- name: remember_gone
-- That a note of the vault was deleted, and when: until it is purged the change log has its text.
INSERT OR IGNORE INTO notes_gone (key, deleted_at) VALUES (?, ?);

-- name: insert_note_tag
-- A tag of a note.
INSERT INTO note_tags (tag, note) VALUES (?, ?);

-- name: delete_note_tags
-- Before a note gets new ones.
DELETE FROM note_tags WHERE note = ?;

-- name: insert_note_vector
-- A note's vector.
INSERT INTO note_vectors (note, vector, norm) VALUES (?, ?, ?);

-- name: delete_note_vector
-- Before a note gets a new one, or none.
DELETE FROM note_vectors WHERE note = ?;

-- name: insert_vault_words
-- Index the words of a note in the vault.
INSERT INTO vault_words (rowid, key, content, tags) VALUES (?, ?, ?, ?);

-- name: delete_vault_words
-- Before a note gets new ones.
DELETE FROM vault_words WHERE rowid = ?;

-- name: attend
-- A conversation uses a session, now.
INSERT INTO attendance (seat, owner, session, server, used_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (seat, owner, session) DO UPDATE SET server = excluded.server, used_at = excluded.used_at;

-- name: attends
-- Whether a conversation uses any session, or any that it has not used since a time (NULL: ever).
SELECT EXISTS (SELECT 1 FROM attendance WHERE seat = ?1 AND (?2 IS NULL OR used_at < ?2));

-- name: leave
-- A conversation uses none any more, or none that it has not used since a time (NULL: ever).
DELETE FROM attendance WHERE seat = ?1 AND (?2 IS NULL OR used_at < ?2);

-- name: leave_server
-- A server is gone, and with it all its conversations.
DELETE FROM attendance WHERE server = ?;

-- name: attended
-- Who uses which session.
SELECT server, owner, session FROM attendance;

-- name: sessions
-- The sessions that have notes.
SELECT owner, session FROM note_counts WHERE session <> '';

-- name: table_names
-- Whose file it is.
SELECT name FROM sqlite_schema WHERE type = 'table';

-- name: foreign_vault
-- What another program's vault holds.
SELECT key, content, tags, embedding, created_at, updated_at FROM vault_memories ORDER BY id;

-- name: foreign_sessions
-- What another program's sessions hold.
SELECT session_id, key, content, tags, created_at FROM session_memories ORDER BY id;

-- name: match_expression
-- Entities with a row that matches the FTS5 expression, the best first: a name weighs more than a type, that more than
-- an observation, and what is derived from them least. Materialized because ranks cannot be grouped where they are made.
WITH found AS MATERIALIZED (
    SELECT rowid >> 24 AS entity, bm25(words, 8.0, 4.0, 1.0, 0.5) AS score FROM words
    WHERE words MATCH ? AND rowid > 0
)
SELECT entity, min(score) FROM found GROUP BY entity ORDER BY min(score), entity;

-- name: buried_ids
-- Rows of deleted entities by their UUIDs (a JSON array): one that comes back gets its old row.
SELECT e.uid, e.id FROM json_each(?) AS wanted CROSS JOIN entities AS e ON e.uid = wanted.value AND e.deleted_at > 0;

-- name: unbury_entity
-- An entity that comes back to its row.
UPDATE entities
SET name = ?, type = ?, summary = ?, summary_at = ?, tags = ?, next_ordinal = max(next_ordinal, ?), created_at = ?,
    updated_at = ?, deleted_at = NULL
WHERE id = ?;

-- name: trashed_entities
-- Deleted entities, the latest first.
SELECT id, name, type, uid, next_ordinal, summary, summary_at, tags, created_at, updated_at, deleted_at
FROM entities WHERE deleted_at > 0 ORDER BY deleted_at DESC, id;

-- name: trashed_with
-- The observations that were deleted together with an entity.
SELECT id, content, created_at, valid_at FROM observations WHERE id > ? AND id < ? AND deleted_at = ? ORDER BY id;

-- name: trashed_observations
-- Observations that were deleted by themselves, the latest first, with the entity they belong to.
SELECT o.id, o.content, o.created_at, o.valid_at, o.deleted_at, e.uid, e.name, e.deleted_at IS NOT NULL
FROM observations AS o CROSS JOIN entities AS e ON e.id = o.id >> 24
WHERE o.deleted_at > 0 AND o.deleted_at IS NOT e.deleted_at ORDER BY o.deleted_at DESC, o.id;

-- name: trashed_relations
-- Deleted relations that have not been made again, the latest first.
SELECT r.id, r.source, r.target, r.type, r.created_at, r.deleted_at FROM relations AS r
WHERE r.deleted_at > 0 AND NOT EXISTS (
    SELECT 1 FROM relations AS again
    WHERE again.source = r.source AND again.target = r.target AND again.type = r.type AND again.deleted_at IS NULL
)
ORDER BY r.deleted_at DESC, r.id;

-- name: doomed_entities
-- Entities that were deleted before a time: for good now.
SELECT id, uid, name, created_at, deleted_at FROM entities WHERE deleted_at > 0 AND deleted_at < ?;

-- name: doomed_observations
-- Observations that were deleted before a time, with what the change log calls them by.
SELECT o.id, e.uid, e.name, e.created_at, coalesce(e.deleted_at, 0)
FROM observations AS o CROSS JOIN entities AS e ON e.id = o.id >> 24 WHERE o.deleted_at > 0 AND o.deleted_at < ?;

-- name: doomed_relations
-- Relations that were deleted before a time.
SELECT id, source, target, type, created_at FROM relations WHERE deleted_at > 0 AND deleted_at < ?;

-- name: doomed_notes
-- Notes of the vault that were deleted before a time: what the change log has of them goes now.
SELECT key, max(deleted_at) FROM notes_gone WHERE deleted_at < ? GROUP BY key;

-- name: record_purge
-- That the change log no longer tells of everything that went: who follows it must begin anew.
INSERT INTO purges (cutoff) VALUES (?);

-- name: last_purge
-- The number of the last purge.
SELECT coalesce(max(id), 0) FROM purges;

-- name: purge_entity
-- Gone.
DELETE FROM entities WHERE id = ?;

-- name: purge_observations_of
-- Gone with their entity, whenever they were deleted.
DELETE FROM observations WHERE id > ? AND id < ?;

-- name: purge_observation
-- Gone.
DELETE FROM observations WHERE id = ?;

-- name: purge_notes
-- Nothing is left of the notes that were deleted before a time.
DELETE FROM notes_gone WHERE deleted_at < ?;

-- name: purge_relation
-- Gone.
DELETE FROM relations WHERE id = ?;

-- name: rewrite_change
-- The change log without what was purged.
UPDATE changes SET before_state = ?2, after_state = ?3 WHERE id = ?1;

-- name: optimize_trigrams
-- Merge the index whole: until then the grams of deleted rows are still in it.
INSERT INTO trigrams (trigrams) VALUES ('optimize');

-- name: optimize_words
-- The same for words.
INSERT INTO words (words) VALUES ('optimize');

-- name: optimize_vault_words
-- And for the words of notes.
INSERT INTO vault_words (vault_words) VALUES ('optimize');
