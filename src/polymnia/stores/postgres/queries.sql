-- name: begin
-- A transaction that may write. It waits for the lock of its workspace and then sees everything that was committed.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: commit
-- The end of a transaction that wrote.
COMMIT;

-- name: set_workspace
-- For row-level security: the only workspace whose rows this transaction sees.
SELECT set_config('polymnia.workspace', $1::bigint::text, true);

-- name: known_names
-- Which of the names are taken. The keys are an array, here and below, so that the planner always uses the index.
SELECT c.name FROM cards AS c
WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND c.name = ANY ($2::text[]) AND c.until IS NULL;

-- name: entity_ids
-- The identities behind names, and their living cards, to change them.
SELECT c.name, c.entity, c.id FROM cards AS c
WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND c.name = ANY ($2::text[]) AND c.until IS NULL;

-- name: entities_by_uid
-- The identities with these ids and, while they live, their names: a deleted entity comes back to its own.
SELECT e.uid, e.id, (
    SELECT c.name FROM cards AS c WHERE c.workspace_id = $1 AND c.entity = e.id AND c.until IS NULL)
FROM entities AS e
WHERE e.workspace_id = $1 AND text_key(e.uid) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND e.uid = ANY ($2::text[]);

-- name: entity_named
-- One entity by name: the most frequent read.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM cards AS c JOIN entities AS e ON e.workspace_id = $1 AND e.id = c.entity
WHERE c.workspace_id = $1 AND text_key(c.name) = text_key($2) AND c.name = $2 AND c.until IS NULL;

-- name: entities_named
-- The entities with these names, oldest first.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM cards AS c JOIN entities AS e ON e.workspace_id = $1 AND e.id = c.entity
WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND c.name = ANY ($2::text[]) AND c.until IS NULL
ORDER BY e.id;

-- name: entities_by_id
-- The entities with these row ids, oldest first.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM entities AS e JOIN cards AS c ON c.workspace_id = $1 AND c.entity = e.id AND c.until IS NULL
WHERE e.workspace_id = $1 AND e.id = ANY ($2::bigint[])
ORDER BY e.id;

-- name: headings
-- Names and types of the entities with these row ids.
SELECT c.entity, c.name, c.type FROM cards AS c
WHERE c.workspace_id = $1 AND c.entity = ANY ($2::bigint[]) AND c.until IS NULL;

-- name: entities_all
-- Every living entity, oldest first.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM cards AS c JOIN entities AS e ON e.workspace_id = $1 AND e.id = c.entity
WHERE c.workspace_id = $1 AND c.until IS NULL
ORDER BY e.id;

-- name: entities_page
-- A page of the entities, or of those of one type, oldest first; a limit of NULL is none.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM entities AS e JOIN cards AS c ON c.workspace_id = $1 AND c.entity = e.id AND c.until IS NULL
WHERE e.workspace_id = $1 AND ($2::text IS NULL OR c.type = $2)
ORDER BY e.id LIMIT $3 OFFSET $4;

-- name: outlines
-- The entities with these names and of this type, without their observations, oldest first.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM cards AS c JOIN entities AS e ON e.workspace_id = $1 AND e.id = c.entity
WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND c.name = ANY ($2::text[]) AND c.until IS NULL AND ($3::text IS NULL OR c.type = $3)
ORDER BY e.id;

-- name: outlines_all
-- The entities of a type, or all, without their observations, oldest first.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM cards AS c JOIN entities AS e ON e.workspace_id = $1 AND e.id = c.entity
WHERE c.workspace_id = $1 AND c.until IS NULL AND ($2::text IS NULL OR c.type = $2)
ORDER BY e.id;

-- name: recent_entities
-- The entities updated since a time, the latest first, without their observations.
SELECT e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at
FROM entities AS e JOIN cards AS c ON c.workspace_id = $1 AND c.entity = e.id AND c.until IS NULL
WHERE e.workspace_id = $1 AND e.updated_at >= $2
ORDER BY e.updated_at DESC, e.id DESC LIMIT $3;

-- name: observations_of
-- The observations of the entity with a name.
SELECT o.entity, o.ordinal, o.text, o.created_at, o.valid_at
FROM cards AS c JOIN observations AS o ON o.workspace_id = $1 AND o.entity = c.entity AND o.until IS NULL
WHERE c.workspace_id = $1 AND text_key(c.name) = text_key($2) AND c.name = $2 AND c.until IS NULL
ORDER BY o.ordinal;

-- name: observations_of_names
-- The observations of the entities with these names, entity by entity.
SELECT o.entity, o.ordinal, o.text, o.created_at, o.valid_at
FROM cards AS c JOIN observations AS o ON o.workspace_id = $1 AND o.entity = c.entity AND o.until IS NULL
WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND c.name = ANY ($2::text[]) AND c.until IS NULL
ORDER BY o.entity, o.ordinal;

-- name: observations_of_many
-- The observations of these entities (row ids), entity by entity.
SELECT o.entity, o.ordinal, o.text, o.created_at, o.valid_at FROM observations AS o
WHERE o.workspace_id = $1 AND o.entity = ANY ($2::bigint[]) AND o.until IS NULL
ORDER BY o.entity, o.ordinal;

-- name: observations_all
-- Every living observation, for exports and snapshots.
SELECT entity, ordinal, text, created_at, valid_at FROM observations
WHERE workspace_id = $1 AND until IS NULL
ORDER BY entity, ordinal;

-- name: relations_of
-- The relations of one name, oldest first.
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(source) = text_key($2) AND source = $2 AND until IS NULL
UNION ALL
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(target) = text_key($2) AND target = $2 AND source <> $2 AND until IS NULL
ORDER BY 1;

-- name: relations_of_many
-- The relations that touch one of these names, oldest first.
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(source) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND source = ANY ($2::text[]) AND until IS NULL
UNION
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(target) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
    AND target = ANY ($2::text[]) AND until IS NULL
ORDER BY 1;

-- name: relations_all
-- Every living relation, oldest first.
SELECT id, source, target, type, created_at FROM relations WHERE workspace_id = $1 AND until IS NULL ORDER BY id;

-- name: relations_keyed
-- The relations with these keys: sources, targets and types.
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM unnest($2::text[], $3::text[], $4::text[]) AS wanted (source, target, type)
CROSS JOIN LATERAL (
    SELECT * FROM relations AS r
    WHERE r.workspace_id = $1 AND text_key(r.source) = text_key(wanted.source) AND text_key(r.target) = text_key(wanted.target)
        AND text_key(r.type) = text_key(wanted.type) AND r.until IS NULL
        AND r.source = wanted.source AND r.target = wanted.target AND r.type = wanted.type
    LIMIT 1
) AS r
ORDER BY r.id;

-- name: relations_from
-- Relations from a name, perhaps with a given target and type.
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(source) = text_key($2) AND source = $2
    AND ($3::text IS NULL OR target = $3) AND ($4::text IS NULL OR type = $4) AND until IS NULL
ORDER BY id;

-- name: relations_to
-- Relations to a name, perhaps of a given type.
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND text_key(target) = text_key($2) AND target = $2 AND ($3::text IS NULL OR type = $3) AND until IS NULL
ORDER BY id;

-- name: relations_typed
-- Relations of a type, or all.
SELECT id, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND ($2::text IS NULL OR type = $2) AND until IS NULL
ORDER BY id;

-- name: entity_types
-- The types of living entities, the most frequent first.
SELECT type, count(*) FROM cards WHERE workspace_id = $1 AND until IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: relation_types
-- The types of living relations, the most frequent first.
SELECT type, count(*) FROM relations WHERE workspace_id = $1 AND until IS NULL GROUP BY type ORDER BY count(*) DESC, type;

-- name: distinct_texts
-- How many distinct texts there are, and their size in bytes.
SELECT count(*), coalesce(sum(octet_length(text)), 0)::bigint FROM (
    SELECT name AS text FROM cards WHERE workspace_id = $1 AND until IS NULL
    UNION SELECT type FROM cards WHERE workspace_id = $1 AND until IS NULL
    UNION SELECT text FROM observations WHERE workspace_id = $1 AND until IS NULL
    UNION SELECT source FROM relations WHERE workspace_id = $1 AND until IS NULL
    UNION SELECT target FROM relations WHERE workspace_id = $1 AND until IS NULL
    UNION SELECT type FROM relations WHERE workspace_id = $1 AND until IS NULL
) AS texts;

-- name: counts
-- How many rows live.
SELECT
    (SELECT count(*) FROM cards WHERE workspace_id = $1 AND until IS NULL),
    (SELECT count(*) FROM observations WHERE workspace_id = $1 AND until IS NULL),
    (SELECT count(*) FROM relations WHERE workspace_id = $1 AND until IS NULL);

-- name: last_change
-- The last change: its id, its time and the last row id given out.
SELECT last_change, last_at, last_row FROM workspaces WHERE workspace_id = $1;

-- name: lock_workspace
-- Lock the workspace for a change, like the UPDATE that ends it: the last change, its time, the last row id, and whether the
-- workspace may be changed.
SELECT last_change, last_at, last_row, is_active FROM workspaces WHERE workspace_id = $1 FOR NO KEY UPDATE;

-- name: record_change
-- Record a change, after all its rows, and notify followers if there are any.
WITH workspace AS (
    UPDATE workspaces SET last_change = $2, last_at = $3, last_row = $7, passages = passages + $9, words = words + $10
    WHERE workspace_id = $1
    RETURNING workspace_id
), change AS (
    INSERT INTO changes (workspace_id, id, at, actor, server, operation, last_row, key)
    SELECT workspace_id, $2, $3, $4::text, $5::text, $6::text, $7, $8::uuid FROM workspace
)
SELECT pg_notify('polymnia', $1::bigint::text) FROM followers WHERE workspace_id = $1 AND expires_at > $3;

-- name: change_keyed
-- Whether the change with this random key was committed. It is one of the last.
SELECT id FROM changes WHERE workspace_id = $1 AND id > $2 AND key = $3;

-- name: insert_entities
-- Add identities.
INSERT INTO entities (workspace_id, id, uid, next_ordinal, updated_at, touched)
SELECT $1, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]);

-- name: update_entities
-- Update the times of entities and the ordinals that their next observations get.
UPDATE entities AS e SET next_ordinal = greatest(e.next_ordinal, u.next_ordinal), updated_at = u.updated_at, touched = $5
FROM (
    SELECT id, max(next_ordinal) AS next_ordinal, max(updated_at) AS updated_at
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS u (id, next_ordinal, updated_at)
    GROUP BY id
) AS u
WHERE e.workspace_id = $1 AND e.id = u.id;

-- name: touch_entities
-- Update the times of the entities with these names, whose own rows stay as they are.
UPDATE entities AS e SET updated_at = $3, touched = $4
FROM cards AS c
WHERE e.workspace_id = $1 AND c.workspace_id = $1 AND c.entity = e.id AND c.until IS NULL
    AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n)) AND c.name = ANY ($2::text[]);

-- name: set_updated
-- Set the times at which entities from elsewhere (ids) were updated there.
UPDATE entities AS e SET updated_at = u.at
FROM unnest($2::text[], $3::bigint[]) AS u (uid, at)
WHERE e.workspace_id = $1 AND text_key(e.uid) = text_key(u.uid) AND e.uid = u.uid;

-- name: insert_cards
-- Add versions of entities' attributes. Tags come as array literals.
INSERT INTO cards (workspace_id, id, entity, name, type, summary, summary_at, tags, created_at, since)
SELECT $1, c.id, c.entity, c.name, c.type, c.summary, c.summary_at, c.tags::text[], c.created_at, $10
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[])
    AS c (id, entity, name, type, summary, summary_at, tags, created_at);

-- name: end_cards
-- End cards.
UPDATE cards SET until = $3 WHERE workspace_id = $1 AND id = ANY ($2::bigint[]);

-- name: insert_observations
-- Add observations.
INSERT INTO observations (workspace_id, id, entity, ordinal, text, created_at, valid_at, since)
SELECT $1, o.*, $8 FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[]) AS o;

-- name: end_observations
-- End single observations of entities: row ids and ordinals.
UPDATE observations AS o SET until = $4
FROM unnest($2::bigint[], $3::bigint[]) AS u (entity, ordinal)
WHERE o.workspace_id = $1 AND o.entity = u.entity AND o.ordinal = u.ordinal AND o.until IS NULL;

-- name: end_observations_of
-- End all observations of entities.
UPDATE observations SET until = $3 WHERE workspace_id = $1 AND entity = ANY ($2::bigint[]) AND until IS NULL;

-- name: insert_relations
-- Add relations.
INSERT INTO relations (workspace_id, id, source, target, type, created_at, since)
SELECT $1, r.*, $7 FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS r;

-- name: end_relations
-- End relations: sources, targets and types.
UPDATE relations AS r SET until = $5
FROM unnest($2::text[], $3::text[], $4::text[]) AS u (source, target, type)
WHERE r.workspace_id = $1 AND text_key(r.source) = text_key(u.source) AND text_key(r.target) = text_key(u.target)
    AND text_key(r.type) = text_key(u.type) AND r.source = u.source AND r.target = u.target AND r.type = u.type
    AND r.until IS NULL;

-- name: insert_notes
-- Add versions of vault notes. Tags come as array literals.
INSERT INTO notes (workspace_id, id, key, text, tags, created_at, updated_at, since)
SELECT $1, n.id, n.key, n.text, n.tags::text[], n.created_at, n.updated_at, $8
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[])
    AS n (id, key, text, tags, created_at, updated_at);

-- name: insert_note_tags
-- Add the tags of the living vault notes that a change created.
INSERT INTO note_tags (workspace_id, tag, note)
SELECT DISTINCT n.workspace_id, t.tag, n.id FROM notes AS n CROSS JOIN LATERAL unnest(n.tags) AS t (tag)
WHERE n.workspace_id = $1 AND n.id = ANY ($2::bigint[]);

-- name: end_notes
-- End vault notes and delete their tags.
WITH ended AS (
    UPDATE notes SET until = $3
    WHERE workspace_id = $1 AND text_key(key) = ANY (ARRAY(SELECT text_key(n) FROM unnest($2::text[]) AS n))
        AND key = ANY ($2::text[]) AND until IS NULL
    RETURNING workspace_id, id
)
DELETE FROM note_tags AS t USING ended WHERE t.workspace_id = $1 AND t.note = ended.id;

-- name: upsert_session_notes
-- Add notes of sessions, or replace those with the same key.
INSERT INTO session_notes (workspace_id, id, owner, session, key, text, tags, embedding, created_at, updated_at)
SELECT $1, s.id, s.owner, s.session, s.key, s.text, s.tags::text[], s.embedding, s.created_at, s.updated_at
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::bigint[], $10::bigint[])
    AS s (id, owner, session, key, text, tags, embedding, created_at, updated_at)
ON CONFLICT (workspace_id, text_key(owner), text_key(session), text_key(key)) DO UPDATE SET text = excluded.text,
    tags = excluded.tags, embedding = excluded.embedding, created_at = excluded.created_at, updated_at = excluded.updated_at;

-- name: delete_session_notes
-- Delete notes of sessions: owners, sessions and keys. They have no history.
DELETE FROM session_notes AS s USING unnest($2::text[], $3::text[], $4::text[]) AS d (owner, session, key)
WHERE s.workspace_id = $1 AND text_key(s.owner) = text_key(d.owner) AND text_key(s.session) = text_key(d.session)
    AND text_key(s.key) = text_key(d.key);

-- name: insert_words
-- Index the words of passages: ids, lengths and tsvectors.
INSERT INTO words (workspace_id, passage, length, terms)
SELECT $1, w.passage, w.length, w.terms::tsvector
FROM unnest($2::bigint[], $3::integer[], $4::text[]) AS w (passage, length, terms);

-- name: insert_terms
-- Remember words, for spelling.
INSERT INTO terms (workspace_id, term) SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING;

-- name: unindex_ended
-- Remove the passages that a change ended from the words, and from the totals.
WITH ended AS (
    SELECT id FROM cards WHERE workspace_id = $1 AND until = $2
    UNION ALL SELECT id FROM observations WHERE workspace_id = $1 AND until = $2
    UNION ALL SELECT id FROM notes WHERE workspace_id = $1 AND until = $2
), removed AS (
    DELETE FROM words AS w USING ended WHERE w.workspace_id = $1 AND w.passage = ended.id RETURNING w.length
), totals AS (
    SELECT count(*) AS passages, coalesce(sum(length), 0) AS words FROM removed
)
UPDATE workspaces AS w SET passages = w.passages - t.passages, words = w.words - t.words
FROM totals AS t WHERE w.workspace_id = $1;

-- name: add_client_model
-- Add the model that stands for the clients' own vectors of some dimension, unless it exists.
INSERT INTO models (workspace_id, id, identity, url, dimension)
SELECT $1, coalesce(max(m.id), 0) + 1, $2::text, $3::text, $4::integer FROM models AS m WHERE m.workspace_id = $1
ON CONFLICT (workspace_id, text_key(identity)) DO NOTHING;

-- name: insert_client_vector
-- Add the vector that a client supplied for a passage.
INSERT INTO vectors (workspace_id, model, template, passage, raw)
SELECT $1, m.id, 1, $3::bigint, $4::bytea FROM models AS m WHERE m.workspace_id = $1 AND m.identity = $2::text;

-- name: has_schema
-- Whether a Polymnia has been here before.
SELECT to_regclass('polymnia.migrations') IS NOT NULL;

-- name: last_migration
-- The newest migration that was applied.
SELECT coalesce(max(number), 0) FROM migrations;

-- name: lock_migrations
-- Wait until no other process changes the schema.
SELECT pg_advisory_xact_lock($1);

-- name: without_timeouts
-- Let a migration take as long as it needs.
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true);

-- name: record_migration
-- Record that a migration was applied.
INSERT INTO migrations (number) VALUES ($1);

-- name: has_row_security
-- Whether the rows are protected, and whether this role passes by the protection.
SELECT c.relrowsecurity, r.rolsuper OR r.rolbypassrls
FROM pg_class AS c CROSS JOIN pg_roles AS r WHERE c.oid = 'entities'::regclass AND r.rolname = current_user;

-- name: enable_row_security
-- Let every role, even the owner of the tables, see only the rows of the workspace that its transaction has named.
DO $$
DECLARE found regclass;
BEGIN
    FOR found IN
        SELECT c.oid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'catalogue'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', found);
        EXECUTE format('DROP POLICY IF EXISTS one_workspace ON %s', found);
        EXECUTE format('CREATE POLICY one_workspace ON %s USING '
            '(workspace_id = nullif(current_setting(''polymnia.workspace'', true), '''')::bigint)', found);
    END LOOP;
END
$$;

-- name: disable_row_security
-- Undo that.
DO $$
DECLARE found regclass;
BEGIN
    FOR found IN
        SELECT c.oid FROM pg_class AS c
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY', found);
    END LOOP;
END
$$;

-- name: workspace_named
-- One workspace by its name, with the id that its rows have and its generation.
SELECT uid, name, description, status, created_at, updated_at, workspace_id, generation
FROM catalogue WHERE folded = $1 AND name = $2;

-- name: workspaces_listed
-- The workspaces of a status, or all, by name.
SELECT uid, name, description, status, created_at, updated_at FROM catalogue
WHERE $1::text IS NULL OR status = $1 ORDER BY name;

-- name: workspace_like
-- The workspace whose name differs in case at most.
SELECT uid, name, status FROM catalogue WHERE folded = $1;

-- name: insert_workspace
-- Add a workspace to the catalogue, unless one has nearly the same name.
INSERT INTO catalogue (uid, name, folded, description, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, 'active', $5, $5) ON CONFLICT (folded) DO NOTHING RETURNING workspace_id;

-- name: fill_workspace
-- Add what every workspace has: its lock, and the perspective of the passages' own text.
WITH lock AS (
    INSERT INTO workspaces (workspace_id) VALUES ($1)
), template AS (
    INSERT INTO templates (workspace_id, id, template) VALUES ($1, 1, '{text}')
)
INSERT INTO perspectives (workspace_id, id, name, template, query) VALUES ($1, 1, 'text', 1, '{query}');

-- name: archive_workspace
-- Refuse writers from now on. It waits for the one that is at work.
UPDATE workspaces SET is_active = false WHERE workspace_id = $1;

-- name: restore_workspace
-- Admit writers again.
UPDATE workspaces SET is_active = true WHERE workspace_id = $1;

-- name: set_workspace_status
-- Archive or restore a workspace in the catalogue. Stores that were opened before are of an earlier generation.
UPDATE catalogue SET status = $2, generation = generation + 1, updated_at = $3 WHERE workspace_id = $1;

-- name: rename_workspace
-- Change the name of a workspace, unless another one has nearly the same.
UPDATE catalogue SET name = $2, folded = $3, updated_at = $4 WHERE workspace_id = $1;

-- name: describe_workspace
-- Change the description of a workspace.
UPDATE catalogue SET description = $2, updated_at = $3 WHERE workspace_id = $1;

-- name: workspace_generation
-- The generation of a workspace while it is active.
SELECT generation FROM catalogue WHERE workspace_id = $1 AND status = 'active';

-- name: delete_workspace
-- Delete everything of a workspace, whose writers wait. What refers to other rows goes first.
WITH vectors AS (DELETE FROM vectors WHERE workspace_id = $1),
    words AS (DELETE FROM words WHERE workspace_id = $1),
    terms AS (DELETE FROM terms WHERE workspace_id = $1),
    session_notes AS (DELETE FROM session_notes WHERE workspace_id = $1),
    session_members AS (DELETE FROM session_members WHERE workspace_id = $1),
    note_tags AS (DELETE FROM note_tags WHERE workspace_id = $1),
    relations AS (DELETE FROM relations WHERE workspace_id = $1),
    observations AS (DELETE FROM observations WHERE workspace_id = $1),
    cards AS (DELETE FROM cards WHERE workspace_id = $1),
    perspectives AS (DELETE FROM perspectives WHERE workspace_id = $1),
    marks AS (DELETE FROM marks WHERE workspace_id = $1),
    purges AS (DELETE FROM purges WHERE workspace_id = $1),
    changes AS (DELETE FROM changes WHERE workspace_id = $1),
    leases AS (DELETE FROM leases WHERE workspace_id = $1),
    followers AS (DELETE FROM followers WHERE workspace_id = $1)
DELETE FROM workspaces WHERE workspace_id = $1;

-- name: delete_workspace_roots
-- Delete what the rows of a workspace referred to.
WITH notes AS (DELETE FROM notes WHERE workspace_id = $1),
    entities AS (DELETE FROM entities WHERE workspace_id = $1),
    models AS (DELETE FROM models WHERE workspace_id = $1)
DELETE FROM templates WHERE workspace_id = $1;

-- name: delete_from_catalogue
-- Delete the name of a workspace.
DELETE FROM catalogue WHERE workspace_id = $1;
