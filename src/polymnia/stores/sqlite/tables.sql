-- name: read_changes
-- The changes after one.
SELECT c.id, c.at, a.name, a.server, c.operation, c.last_row
FROM changes AS c CROSS JOIN actors AS a ON a.id = c.actor WHERE c.id > ? ORDER BY c.id LIMIT ?;

-- name: write_changes
-- Add a change whose actor is known.
INSERT INTO changes (id, at, actor, operation, last_row)
SELECT ?1, ?2, a.id, ?5, ?6 FROM actors AS a WHERE a.name = ?3 AND a.server = ?4;

-- name: read_purges
-- All rows.
SELECT change FROM purges ORDER BY change;

-- name: write_purges
-- Add a row.
INSERT INTO purges (change) VALUES (?);

-- name: read_marks
-- All rows.
SELECT name, change, at FROM marks ORDER BY name;

-- name: write_marks
-- Add a row.
INSERT INTO marks (name, change, at) VALUES (?, ?, ?);

-- name: read_entities
-- The rows after one.
SELECT id, uid, next_ordinal, updated_at, touched FROM entities WHERE id > ? ORDER BY id LIMIT ?;

-- name: write_entities
-- Add a row.
INSERT INTO entities (id, uid, next_ordinal, updated_at, touched) VALUES (?, ?, ?, ?, ?);

-- name: read_updates
-- The rows after one.
SELECT entity, change, at FROM updates WHERE (entity, change) > (?, ?) ORDER BY entity, change LIMIT ?;

-- name: write_updates
-- Add a row.
INSERT INTO updates (entity, change, at) VALUES (?, ?, ?);

-- name: read_cards
-- The rows after one.
SELECT id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, since, until FROM cards WHERE id > ? ORDER BY id LIMIT ?;

-- name: write_cards
-- Add a row.
INSERT INTO cards (id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, since, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_observations
-- The rows after one.
SELECT id, entity, ordinal, text, created_at, valid_at, source, expires, author, successor, since, until FROM observations WHERE id > ? ORDER BY id LIMIT ?;

-- name: write_observations
-- Add a row.
INSERT INTO observations (id, entity, ordinal, text, created_at, valid_at, source, expires, author, successor, since, until)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_relations
-- The rows after one.
SELECT id, source, target, type, created_at, since, until FROM relations WHERE id > ? ORDER BY id LIMIT ?;

-- name: write_relations
-- Add a row.
INSERT INTO relations (id, source, target, type, created_at, since, until) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: read_notes
-- The rows after one.
SELECT id, key, text, tags, created_at, updated_at, since, until FROM notes WHERE id > ? ORDER BY id LIMIT ?;

-- name: write_notes
-- Add a row.
INSERT INTO notes (id, key, text, tags, created_at, updated_at, since, until) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_models
-- All rows.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit FROM models ORDER BY id;

-- name: write_models
-- Add a row.
INSERT INTO models (id, identity, url, dimension, cosine_zero, cosine_unit) VALUES (?, ?, ?, ?, ?, ?);

-- name: read_templates
-- All rows.
SELECT id, template FROM templates ORDER BY id;

-- name: write_templates
-- Add a row.
INSERT INTO templates (id, template) VALUES (?, ?);

-- name: read_perspectives
-- All rows.
SELECT id, name, template, query FROM perspectives ORDER BY id;

-- name: write_perspectives
-- Add a row.
INSERT INTO perspectives (id, name, template, query) VALUES (?, ?, ?, ?);

-- name: read_vectors
-- The vectors after one, of living passages and of clients.
SELECT v.passage, v.template, v.model, v.vector FROM vectors AS v
WHERE (v.passage, v.template, v.model) > (?1, ?2, ?3) AND (EXISTS (SELECT 1 FROM cards AS c WHERE c.id = v.passage AND c.until IS NULL)
    OR EXISTS (SELECT 1 FROM observations AS o WHERE o.id = v.passage AND o.until IS NULL)
    OR EXISTS (SELECT 1 FROM notes AS n WHERE n.id = v.passage AND n.until IS NULL)
    OR EXISTS (SELECT 1 FROM models AS m WHERE m.id = v.model AND m.url = 'client'))
ORDER BY v.passage, v.template, v.model LIMIT ?4;

-- name: write_vectors
-- Add a row.
INSERT INTO vectors (passage, template, model, vector) VALUES (?, ?, ?, ?);
