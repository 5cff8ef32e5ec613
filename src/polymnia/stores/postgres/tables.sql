-- name: read_changes
-- The rows after one.
SELECT id, at, actor, server, operation, last_row FROM changes
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_changes
-- Add rows, given as columns.
INSERT INTO changes (workspace_id, id, at, actor, server, operation, last_row, key)
SELECT $1, n.id, n.at, n.actor, n.server, n.operation, n.last_row, gen_random_uuid()
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[])
    AS n (id, at, actor, server, operation, last_row);

-- name: read_purges
-- All rows.
SELECT change FROM purges WHERE workspace_id = $1 ORDER BY change;

-- name: write_purges
-- Add rows, given as columns.
INSERT INTO purges (workspace_id, change)
SELECT $1, n.change
FROM unnest($2::bigint[])
    AS n (change);

-- name: read_marks
-- All rows.
SELECT name, change, at FROM marks WHERE workspace_id = $1 ORDER BY name;

-- name: write_marks
-- Add rows, given as columns.
INSERT INTO marks (workspace_id, name, change, at)
SELECT $1, n.name, n.change, n.at
FROM unnest($2::text[], $3::bigint[], $4::bigint[])
    AS n (name, change, at);

-- name: read_entities
-- The rows after one.
SELECT id, uid, next_ordinal, updated_at, touched FROM entities
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_entities
-- Add rows, given as columns.
INSERT INTO entities (workspace_id, id, uid, next_ordinal, updated_at, touched)
SELECT $1, n.id, n.uid, n.next_ordinal, n.updated_at, n.touched
FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
    AS n (id, uid, next_ordinal, updated_at, touched);

-- name: read_updates
-- The rows after one.
SELECT entity, change, at FROM updates
WHERE workspace_id = $1 AND (entity, change) > ($2::bigint, $3::bigint) ORDER BY entity, change LIMIT $4::bigint;

-- name: write_updates
-- Add rows, given as columns.
INSERT INTO updates (workspace_id, entity, change, at)
SELECT $1, n.entity, n.change, n.at
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[])
    AS n (entity, change, at);

-- name: read_cards
-- The rows after one.
SELECT id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, since, until FROM cards
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_cards
-- Add rows, given as columns. Folded texts come last.
INSERT INTO cards (workspace_id, id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status,
    expires, since, until, folded)
SELECT $1, n.id, n.entity, n.name, n.type, n.summary, n.summary_at, n.tags::text[], n.created_at,
    n.aliases::text[], n.due, n.status, n.expires, n.since, n.until, CASE WHEN n.until IS NULL THEN n.folded END
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
        $10::text[], $11::bigint[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::text[])
    AS n (id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, since, until, folded);

-- name: read_observations
-- The rows after one.
SELECT id, entity, ordinal, text, created_at, valid_at, source, expires, author, successor, since, until FROM observations
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_observations
-- Add rows, given as columns. Folded texts come last.
INSERT INTO observations (workspace_id, id, entity, ordinal, text, created_at, valid_at, source, expires, author, successor,
    since, until, folded)
SELECT $1, n.id, n.entity, n.ordinal, n.text, n.created_at, n.valid_at, n.source, n.expires, n.author, n.successor, n.since,
    n.until, CASE WHEN n.until IS NULL THEN n.folded END
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
        $9::bigint[], $10::text[], $11::bigint[], $12::bigint[], $13::bigint[], $14::text[])
    AS n (id, entity, ordinal, text, created_at, valid_at, source, expires, author, successor, since, until, folded);

-- name: read_relations
-- The rows after one.
SELECT id, source, target, type, created_at, since, until FROM relations
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_relations
-- Add rows, given as columns.
INSERT INTO relations (workspace_id, id, source, target, type, created_at, since, until)
SELECT $1, n.id, n.source, n.target, n.type, n.created_at, n.since, n.until
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[])
    AS n (id, source, target, type, created_at, since, until);

-- name: read_notes
-- The rows after one.
SELECT id, key, text, tags, created_at, updated_at, since, until FROM notes
WHERE row_key > row_key($1, $2::bigint) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3::bigint;

-- name: write_notes
-- Add rows, given as columns. Folded texts come last.
INSERT INTO notes (workspace_id, id, key, text, tags, created_at, updated_at, since, until, folded)
SELECT $1, n.id, n.key, n.text, n.tags::text[], n.created_at, n.updated_at, n.since, n.until,
    CASE WHEN n.until IS NULL THEN n.folded END
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
        $10::text[])
    AS n (id, key, text, tags, created_at, updated_at, since, until, folded);

-- name: read_models
-- All rows.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit FROM models WHERE workspace_id = $1 ORDER BY id;

-- name: write_models
-- Add rows, given as columns.
INSERT INTO models (workspace_id, id, identity, url, dimension, cosine_zero, cosine_unit)
SELECT $1, n.id, n.identity, n.url, n.dimension, n.cosine_zero, n.cosine_unit
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::integer[], $6::float8[], $7::float8[])
    AS n (id, identity, url, dimension, cosine_zero, cosine_unit);

-- name: read_templates
-- All rows.
SELECT id, template FROM templates WHERE workspace_id = $1 ORDER BY id;

-- name: write_templates
-- Add rows, given as columns.
INSERT INTO templates (workspace_id, id, template)
SELECT $1, n.id, n.template
FROM unnest($2::bigint[], $3::text[])
    AS n (id, template);

-- name: read_perspectives
-- All rows.
SELECT id, name, template, query FROM perspectives WHERE workspace_id = $1 ORDER BY id;

-- name: write_perspectives
-- Add rows, given as columns.
INSERT INTO perspectives (workspace_id, id, name, template, query)
SELECT $1, n.id, n.name, n.template, n.query
FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::text[])
    AS n (id, name, template, query);

-- name: read_vectors
-- The vectors after one, of living passages and of clients.
SELECT v.passage, v.template, v.model, v.raw, v.vector FROM vectors AS v
WHERE v.workspace_id = $1 AND (v.passage, v.template, v.model) > ($2::bigint, $3::bigint, $4::bigint) AND (EXISTS (SELECT 1 FROM words AS w WHERE w.workspace_id = $1 AND w.passage = v.passage) OR v.raw IS NOT NULL)
ORDER BY v.passage, v.template, v.model LIMIT $5::bigint;

-- name: write_vectors
-- Add vectors, and those of clients as they came.
INSERT INTO vectors (workspace_id, passage, template, model, raw, vector)
SELECT $1, n.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[], $6::halfvec[]) AS n;

-- name: add_copied_changes
-- Set what a workspace says of its last change, from the changes that were copied.
UPDATE workspaces AS p SET last_change = c.id, last_row = c.last_row, last_at = c.at
FROM (
    SELECT id, last_row, at FROM changes
    WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) ORDER BY row_key DESC LIMIT 1
) AS c
WHERE p.workspace_id = $1;

-- name: add_passages
-- Count new passages and their words.
UPDATE workspaces SET passages = passages + $2::bigint, words = words + $3::bigint WHERE workspace_id = $1;
