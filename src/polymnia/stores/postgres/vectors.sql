-- name: models_all
-- The models that embedders made vectors with, oldest first; clients' own vectors are not among them.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit
FROM models WHERE workspace_id = $1 AND url <> 'client' ORDER BY id;

-- name: model_of
-- One model by its identity.
SELECT id, identity, url, dimension, cosine_zero, cosine_unit
FROM models WHERE workspace_id = $1 AND text_key(identity) = text_key($2::text);

-- name: set_scale
-- Store the scale of a model's cosines.
UPDATE models SET cosine_zero = $3::float8, cosine_unit = $4::float8 WHERE workspace_id = $1 AND id = $2::bigint;

-- name: model_dimension
-- How long a model's vectors are.
SELECT dimension FROM models WHERE workspace_id = $1 AND id = $2::bigint;

-- name: insert_model
-- Add a model with a number that no model before it had, unless there is one with that identity.
INSERT INTO models (workspace_id, id, identity, url, dimension)
SELECT $1, greatest(coalesce(max(m.id), 0) + 1, $2::bigint), $3::text, $4::text, $5::integer
FROM models AS m WHERE m.workspace_id = $1
ON CONFLICT DO NOTHING;

-- name: delete_model
-- Delete a model without vectors.
DELETE FROM models WHERE workspace_id = $1 AND id = $2::bigint;

-- name: delete_broken_vectors
-- Delete the vectors whose length their model does not have, so that they are made again.
DELETE FROM vectors WHERE workspace_id = $1 AND (model, template, passage) IN (
    SELECT v.model, v.template, v.passage FROM vectors AS v
    JOIN models AS m ON m.workspace_id = $1 AND m.id = v.model
    WHERE v.workspace_id = $1 AND vector_dims(v.vector::vector) <> m.dimension
) RETURNING passage;

-- name: delete_vectors_of_model
-- Delete some vectors of a model.
DELETE FROM vectors WHERE workspace_id = $1 AND model = $2::bigint AND (template, passage) IN (
    SELECT template, passage FROM vectors WHERE workspace_id = $1 AND model = $2::bigint LIMIT $3::bigint
) RETURNING passage;

-- name: perspectives_all
-- The perspectives, oldest first.
SELECT p.name, t.template, p.query
FROM perspectives AS p JOIN templates AS t ON t.workspace_id = $1 AND t.id = p.template
WHERE p.workspace_id = $1 ORDER BY p.id;

-- name: template_of
-- The template of a perspective.
SELECT t.id, t.template
FROM perspectives AS p JOIN templates AS t ON t.workspace_id = $1 AND t.id = p.template
WHERE p.workspace_id = $1 AND text_key(p.name) = text_key($2::text);

-- name: insert_template
-- Add a template.
INSERT INTO templates (workspace_id, id, template)
SELECT $1, coalesce(max(t.id), 0) + 1, $2::text FROM templates AS t WHERE t.workspace_id = $1
ON CONFLICT DO NOTHING;

-- name: upsert_perspective
-- Add a perspective, or replace the one with that name.
INSERT INTO perspectives (workspace_id, id, name, template, query)
SELECT $1, (coalesce((SELECT max(p.id) FROM perspectives AS p WHERE p.workspace_id = $1), 0) + 1), $2::text, t.id, $4::text
FROM templates AS t WHERE t.workspace_id = $1 AND text_key(t.template) = text_key($3::text)
ON CONFLICT (workspace_id, text_key(name)) DO UPDATE SET template = excluded.template, query = excluded.query;

-- name: delete_perspective
-- Remove a perspective; return a row if there was one.
DELETE FROM perspectives WHERE workspace_id = $1 AND text_key(name) = text_key($2::text) RETURNING id;

-- name: unused_templates
-- The templates that no perspective has.
SELECT t.id FROM templates AS t
WHERE t.workspace_id = $1 AND NOT EXISTS (
    SELECT 1 FROM perspectives AS p WHERE p.workspace_id = $1 AND p.template = t.id
);

-- name: delete_unused_vectors
-- Delete some vectors of templates.
DELETE FROM vectors WHERE workspace_id = $1 AND (model, template, passage) IN (
    SELECT model, template, passage FROM vectors
    WHERE workspace_id = $1 AND template = ANY ($2::bigint[]) LIMIT $3::bigint
) RETURNING passage;

-- name: delete_templates
-- Delete templates that have no vectors.
DELETE FROM templates WHERE workspace_id = $1 AND id = ANY ($2::bigint[]);

-- name: insert_vectors
-- Add vectors of passages that still live. An existing vector stays.
INSERT INTO vectors (workspace_id, model, template, passage, vector)
SELECT $1, $2::bigint, $3::bigint, n.passage, n.vector
FROM unnest($4::bigint[], $5::halfvec[]) AS n (passage, vector)
WHERE EXISTS (SELECT 1 FROM words AS w WHERE w.workspace_id = $1 AND w.passage = n.passage)
ON CONFLICT DO NOTHING;

-- name: nearest_vectors
-- The nearest vectors of one model and template.
SELECT passage, cosine FROM nearest_vectors($1::bigint, $2::bigint, $3::bigint, $4::vector, $5::integer);

-- name: nearest_within
-- The same among the passages of some names, some types, a period and all of some tags; NULL allows any.
WITH chosen_cards AS MATERIALIZED (
    SELECT c.* FROM (SELECT DISTINCT unnest($6::text[]) AS name) AS w CROSS JOIN LATERAL (
        SELECT * FROM cards AS c
        WHERE c.name_key = name_key($1, w.name) AND c.name = w.name AND c.until IS NULL LIMIT 1
    ) AS c
    UNION ALL
    SELECT c.* FROM cards AS c
    WHERE $6::text[] IS NULL AND c.entity_key BETWEEN row_key($1, 0) AND last_key($1) AND c.until IS NULL
), allowed_cards AS MATERIALIZED (
    SELECT * FROM chosen_cards AS c
    WHERE ($7::text[] IS NULL OR c.type = ANY ($7::text[]))
        AND ($10::text[] IS NULL OR coalesce(c.tags, '{}') @> $10::text[])
), allowed AS MATERIALIZED (
    SELECT c.id FROM allowed_cards AS c
    WHERE ($8::bigint IS NULL OR c.created_at >= $8::bigint) AND ($9::bigint IS NULL OR c.created_at < $9::bigint)
    UNION ALL
    SELECT o.id FROM allowed_cards AS c CROSS JOIN LATERAL (
        SELECT o.id FROM observations AS o
        WHERE o.entity_key = c.entity_key AND o.until IS NULL
            AND ($8::bigint IS NULL OR coalesce(o.valid_at, o.created_at) >= $8::bigint)
            AND ($9::bigint IS NULL OR coalesce(o.valid_at, o.created_at) < $9::bigint)
        OFFSET 0
    ) AS o
    UNION ALL
    SELECT n.id FROM notes AS n
    WHERE n.row_key BETWEEN row_key($1, 0) AND last_key($1) AND n.until IS NULL
        AND ($6::text[] IS NULL OR n.key = ANY ($6::text[]))
        AND ($7::text[] IS NULL OR 'note' = ANY ($7::text[]))
        AND ($8::bigint IS NULL OR n.updated_at >= $8::bigint) AND ($9::bigint IS NULL OR n.updated_at < $9::bigint)
        AND ($10::text[] IS NULL OR coalesce(n.tags, '{}') @> $10::text[])
)
SELECT v.passage, 1 - (v.vector::vector <=> $4::vector)
FROM allowed AS a CROSS JOIN LATERAL (
    SELECT * FROM vectors AS v
    WHERE v.workspace_id = $1 AND v.passage = a.id AND v.model = $2::bigint AND v.template = $3::bigint LIMIT 1
) AS v
ORDER BY 2 DESC, 1 LIMIT $5::integer;

-- name: nearest_notes
-- The clients' own vectors of the nearest living notes, or of the nearest of some.
SELECT v.passage, v.raw FROM vectors AS v
WHERE v.workspace_id = $1 AND v.model = $2::bigint AND v.raw IS NOT NULL
    AND ($5::bigint[] IS NULL OR v.passage = ANY ($5::bigint[]))
    AND EXISTS (SELECT 1 FROM notes AS n WHERE n.row_key = row_key($1, v.passage) AND n.until IS NULL)
ORDER BY v.vector <=> $3::halfvec LIMIT $4::integer;

-- name: vectors_by_passage
-- The vectors of some passages, in pgvector's binary format.
SELECT v.passage, v.vector::vector FROM vectors AS v
WHERE v.workspace_id = $1 AND v.model = $2::bigint AND v.template = $3::bigint AND v.passage = ANY ($4::bigint[]);

-- name: mean_vectors
-- The mean vector of the living observations of each entity, by name.
SELECT c.name, avg(v.vector::vector)
FROM cards AS c
CROSS JOIN LATERAL (
    SELECT o.id FROM observations AS o WHERE o.entity_key = c.entity_key AND o.until IS NULL OFFSET 0
) AS o
CROSS JOIN LATERAL (
    SELECT * FROM vectors AS v
    WHERE v.workspace_id = $1 AND v.passage = o.id AND v.model = $2::bigint AND v.template = $3::bigint LIMIT 1
) AS v
WHERE c.entity_key BETWEEN row_key($1, 0) AND last_key($1) AND c.until IS NULL GROUP BY c.name;

-- name: pending_vectors
-- Living observations and notes between two row ids without a vector of the model, the newest first, with what a template
-- may use: text, name, type and time; and whether it is a fact that was noted, not said (`Passage.is_turn`).
-- OFFSET 0 keeps the lookup for each row, regardless of statistics.
SELECT id, text, name, type, at, is_noted FROM (
    (
        SELECT o.id, o.text, c.name, c.type, coalesce(o.valid_at, o.created_at) AS at,
            c.type <> 'conversation' AND coalesce(o.valid_at, 0) % 86400000000 = 0 AS is_noted
        FROM observations AS o
        CROSS JOIN LATERAL (
            SELECT * FROM cards AS c WHERE c.entity_key = o.entity_key AND c.until IS NULL LIMIT 1
        ) AS c
        WHERE o.row_key > row_key($1, $5::bigint) AND o.row_key < row_key($1, least($6::bigint, 1099511627775))
            AND o.until IS NULL AND NOT EXISTS (
                SELECT 1 FROM vectors AS v WHERE v.workspace_id = $1
                    AND v.model = $2::bigint AND v.template = $3::bigint AND v.passage = o.id
                OFFSET 0
            )
        ORDER BY o.row_key DESC LIMIT $4::bigint
    )
    UNION ALL
    (
        SELECT n.id, n.key || ': ' || n.text, n.key, 'note', n.updated_at, false FROM notes AS n
        WHERE n.row_key > row_key($1, $5::bigint) AND n.row_key < row_key($1, least($6::bigint, 1099511627775))
            AND n.until IS NULL AND NOT EXISTS (
                SELECT 1 FROM vectors AS v WHERE v.workspace_id = $1
                    AND v.model = $2::bigint AND v.template = $3::bigint AND v.passage = n.id
                OFFSET 0
            )
        ORDER BY n.row_key DESC LIMIT $4::bigint
    )
) AS found
ORDER BY id DESC LIMIT $4::bigint;

-- name: vector_coverage
-- How many living observations and notes have a vector of the model, and how many there are.
SELECT
    (SELECT count(*) FROM vectors WHERE workspace_id = $1 AND model = $2::bigint AND template = $3::bigint),
    (SELECT count(*) FROM observations WHERE entity_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL)
    + (SELECT count(*) FROM notes WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL);

-- name: lease_holder
-- The server that holds a lease. It may have been killed.
SELECT server FROM leases WHERE workspace_id = $1 AND name = $2::text;

-- name: take_lease
-- Take a lease that is free, expired or already held by the server; return a row if that worked.
INSERT INTO leases AS l (workspace_id, name, server, expires_at) VALUES ($1, $2::text, $3::text, $4::bigint)
ON CONFLICT (workspace_id, name) DO UPDATE SET server = excluded.server, expires_at = excluded.expires_at
WHERE l.server = excluded.server OR l.expires_at <= $5::bigint
RETURNING l.server;

-- name: release_lease
-- Give up a lease.
DELETE FROM leases WHERE workspace_id = $1 AND name = $2::text AND server = $3::text;

-- name: lock_near_vectors
-- Take the lock of the process that builds a table of near vectors, until the connection ends.
SELECT pg_try_advisory_lock(hashtext(near_table($1::bigint, $2::bigint, $3::bigint)), 0);

-- name: has_many_vectors
-- A row if a workspace has more vectors of a model and template than that.
SELECT 1 FROM vectors
WHERE workspace_id = $1::bigint AND model = $2::bigint AND template = $3::bigint OFFSET $4::bigint LIMIT 1;

-- name: has_near_vectors
-- Whether the table of near vectors was completed.
SELECT to_regclass(near_index($1::bigint, $2::bigint, $3::bigint)) IS NOT NULL;

-- name: build_near_vectors
-- Make the table and its index, which takes minutes for a million vectors.
SELECT build_near_vectors($1::bigint, $2::bigint, $3::bigint, $4::integer);

-- name: refresh_near_vectors
-- Add what was written meanwhile.
SELECT refresh_near_vectors($1::bigint, $2::bigint, $3::bigint);

-- name: complete_near_vectors
-- Let searches use the table.
SELECT complete_near_vectors($1::bigint, $2::bigint, $3::bigint);

-- name: drop_near_vectors
-- Drop the tables of a workspace: all, or those of a model or a template.
SELECT drop_near_vectors($1::bigint, $2::bigint, $3::bigint);
