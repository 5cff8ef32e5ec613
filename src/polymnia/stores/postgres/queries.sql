-- fragment: entity_columns
-- What `unpack_entity` takes.
e.id, c.name, c.type, e.uid, e.next_ordinal, c.summary, c.summary_at, c.tags, c.created_at, e.updated_at,
c.aliases, c.due, c.status, c.expires

-- fragment: observation_columns
-- The entity, and what `unpack_fact` takes.
o.entity, o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author

-- fragment: named_cards
-- The living cards of these names. LATERAL makes one lookup for each name, regardless of statistics.
(SELECT DISTINCT unnest($2::text[]) AS name) AS n CROSS JOIN LATERAL (
    SELECT * FROM cards AS c WHERE c.name_key = name_key($1, n.name) AND c.name = n.name AND c.until IS NULL LIMIT 1
) AS c

-- fragment: entity_of_card
-- The identity behind a card.
CROSS JOIN LATERAL (SELECT * FROM entities AS e WHERE e.row_key = c.entity_key LIMIT 1) AS e

-- fragment: keyed_notes
-- The living vault notes of these keys.
(SELECT DISTINCT unnest($2::text[]) AS key) AS k CROSS JOIN LATERAL (
    SELECT * FROM notes AS n WHERE n.name_key = name_key($1, k.key) AND n.key = k.key AND n.until IS NULL LIMIT 1
) AS n

-- name: gauges
-- For monitoring: the size of the database, and how many of its sessions wait for a lock.
SELECT pg_database_size(current_database()), (
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
);

-- name: replica_lag
-- The seconds that a replica is behind. One that has replayed all it received is not, however old that is.
SELECT CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
    ELSE coalesce(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0) END;

-- name: begin_reading
-- A snapshot, where the connection cannot have our settings.
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: begin
-- A transaction that may write. It waits for the lock of its workspace and then sees everything that was committed.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

-- name: commit
-- The end of a transaction that wrote.
COMMIT;

-- name: set_workspace
-- For row-level security: the only workspace whose rows this transaction sees.
SELECT set_config('polymnia.workspace', $1::bigint::text, true);

-- name: existing_names
-- Which of the names are taken.
SELECT c.name FROM {named_cards};

-- name: entity_ids
-- The identities behind names, and their living cards, to change them.
SELECT c.name, c.entity, c.id FROM {named_cards};

-- name: entities_by_uid
-- The identities with these ids and, while they live, their names: a deleted entity comes back to its own.
SELECT e.uid, e.id, (SELECT c.name FROM cards AS c WHERE c.entity_key = e.row_key AND c.until IS NULL)
FROM (SELECT DISTINCT unnest($2::text[]) AS uid) AS u
CROSS JOIN LATERAL (
    SELECT * FROM entities AS e WHERE e.uid_key = name_key($1, u.uid) AND e.uid = u.uid LIMIT 1
) AS e;

-- name: entity_named
-- One entity by name: the most frequent read. Its living card comes last.
SELECT {entity_columns}, c.id
FROM cards AS c {entity_of_card}
WHERE c.name_key = name_key($1, $2) AND c.name = $2 AND c.until IS NULL;

-- name: entities_named
-- The entities with these names, oldest first. Their living cards come last.
SELECT {entity_columns}, c.id FROM {named_cards} {entity_of_card} ORDER BY e.id;

-- name: entities_by_id
-- The entities with these row ids, oldest first.
SELECT {entity_columns}
FROM (SELECT DISTINCT row_key($1, unnest($2::bigint[])) AS row_key) AS n
CROSS JOIN LATERAL (SELECT * FROM cards AS c WHERE c.entity_key = n.row_key AND c.until IS NULL LIMIT 1) AS c
{entity_of_card}
ORDER BY e.id;

-- name: entities_all
-- Every living entity, oldest first.
SELECT {entity_columns}
FROM cards AS c {entity_of_card}
WHERE c.entity_key BETWEEN row_key($1, 0) AND last_key($1) AND c.until IS NULL
ORDER BY c.entity_key;

-- name: entities_page
-- A page of the entities, oldest first; a limit of NULL means no limit.
SELECT {entity_columns}
FROM (
    SELECT * FROM cards AS c WHERE c.entity_key BETWEEN row_key($1, 0) AND last_key($1) AND c.until IS NULL
    ORDER BY c.entity_key LIMIT $2 OFFSET $3
) AS c {entity_of_card}
ORDER BY c.entity_key;

-- name: entities_typed
-- A page of the entities of a type, oldest first; a limit of NULL means no limit.
SELECT {entity_columns}
FROM (
    SELECT * FROM cards AS c WHERE c.type_key = name_key($1, $2) AND c.type = $2 AND c.until IS NULL
    ORDER BY c.entity_key LIMIT $3 OFFSET $4
) AS c {entity_of_card}
ORDER BY c.entity_key;

-- name: outlines
-- The entities with these names and of this type, without their observations, oldest first.
SELECT {entity_columns} FROM {named_cards} {entity_of_card}
WHERE $3::text IS NULL OR c.type = $3
ORDER BY e.id;

-- name: outlines_all
-- All entities, without their observations, oldest first.
SELECT {entity_columns} FROM cards AS c {entity_of_card}
WHERE c.entity_key BETWEEN row_key($1, 0) AND last_key($1) AND c.until IS NULL ORDER BY c.entity_key;

-- name: recent_entities
-- The entities updated since a time, the latest first, without their observations.
SELECT {entity_columns}
FROM entities AS e
CROSS JOIN LATERAL (SELECT * FROM cards AS c WHERE c.entity_key = e.row_key AND c.until IS NULL LIMIT 1) AS c
WHERE e.workspace_id = $1 AND e.updated_at >= $2
ORDER BY e.updated_at DESC, e.id DESC LIMIT $3;

-- name: aliased_entities
-- The entities with former names, without their observations, oldest first.
SELECT {entity_columns}
FROM cards AS c {entity_of_card}
WHERE c.workspace_id = $1 AND c.aliases IS NOT NULL AND c.until IS NULL ORDER BY e.id;

-- name: entities_with_status
-- The entities with a status, or with this one, without their observations, oldest first.
SELECT {entity_columns}
FROM cards AS c {entity_of_card}
WHERE c.workspace_id = $1 AND c.status IS NOT NULL AND c.until IS NULL AND ($2::text IS NULL OR c.status = $2::text)
ORDER BY e.id;

-- name: observations_of
-- The observations of the entity with a name.
SELECT {observation_columns}
FROM observations AS o
WHERE o.entity_key = (
        SELECT c.entity_key FROM cards AS c
        WHERE c.name_key = name_key($1, $2) AND c.name = $2 AND c.until IS NULL)
    AND o.until IS NULL
ORDER BY o.ordinal;

-- name: observations_of_names
-- The observations of the entities with these names, entity by entity.
SELECT {observation_columns}
FROM {named_cards}
CROSS JOIN LATERAL (
    SELECT * FROM observations AS o WHERE o.entity_key = c.entity_key AND o.until IS NULL OFFSET 0
) AS o
ORDER BY o.entity, o.ordinal;

-- name: observations_of_many
-- The observations of these entities (row ids), entity by entity.
SELECT {observation_columns}
FROM (SELECT DISTINCT row_key($1, unnest($2::bigint[])) AS row_key) AS n
CROSS JOIN LATERAL (
    SELECT * FROM observations AS o WHERE o.entity_key = n.row_key AND o.until IS NULL OFFSET 0
) AS o
ORDER BY o.entity, o.ordinal;

-- name: observations_all
-- Every living observation, for exports and snapshots.
SELECT entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE entity_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
ORDER BY entity_key, ordinal;

-- name: relations_of
-- The relations of one name, oldest first.
SELECT id, source, target, type, created_at FROM relations
WHERE source_key = name_key($1, $2) AND source = $2 AND until IS NULL
UNION ALL
SELECT id, source, target, type, created_at FROM relations
WHERE target_key = name_key($1, $2) AND target = $2 AND source <> $2 AND until IS NULL
ORDER BY 1;

-- name: path_steps
-- The steps of a search for a shortest path: names one relation further from the source (forward) or from the target, the
-- smaller front first, with where the oldest relation to each leads from, until a step meets the other front, leads nowhere
-- or too many names were seen. Relations lead both ways, so the neighbours of a front are in it, in the front before it, or new.
WITH RECURSIVE walk (forward, names, via, front, before_front, back, before_back, is_over, seen) AS (
    SELECT true, e.empty, e.empty, ARRAY[$2::text] || e.empty, e.empty, ARRAY[$3::text] || e.empty, e.empty, false, 2
    FROM (SELECT '{}'::text[] COLLATE "C" AS empty) AS e
    UNION ALL
    SELECT s.forward, n.names, n.via,
        CASE WHEN s.forward THEN n.names ELSE w.front END, CASE WHEN s.forward THEN w.front ELSE w.before_front END,
        CASE WHEN s.forward THEN w.back ELSE n.names END, CASE WHEN s.forward THEN w.before_back ELSE w.back END,
        n.names = '{}' OR n.meets, w.seen + cardinality(n.names)
    FROM walk AS w
    CROSS JOIN LATERAL (SELECT cardinality(w.front) <= cardinality(w.back) AS forward) AS s
    CROSS JOIN LATERAL (
        SELECT CASE WHEN s.forward THEN w.front ELSE w.back END AS here,
            CASE WHEN s.forward THEN w.before_front ELSE w.before_back END AS before,
            CASE WHEN s.forward THEN w.back ELSE w.front END AS there
    ) AS f
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(d.name ORDER BY d.id, d.rank), '{}') AS names,
            coalesce(array_agg(d.via ORDER BY d.id, d.rank), '{}') AS via, coalesce(bool_or(d.meets), false) AS meets
        FROM (
            -- Sorted, not compared with each name that was seen: a front may have thousands.
            SELECT DISTINCT ON (c.name) c.*, max(c.rank) OVER (PARTITION BY c.name) = 3 AS meets FROM (
                SELECT x.name, NULL::text AS via, 0::bigint AS id, 0 AS rank FROM unnest(f.here || f.before) AS x (name)
                UNION ALL
                SELECT r.target, r.source, r.id, 1 FROM unnest(f.here) AS h (name) CROSS JOIN LATERAL (
                    SELECT * FROM relations AS r
                    WHERE r.source_key = name_key($1, h.name) AND r.source = h.name AND r.until IS NULL OFFSET 0
                ) AS r
                UNION ALL
                SELECT r.source, r.target, r.id, 2 FROM unnest(f.here) AS h (name) CROSS JOIN LATERAL (
                    SELECT * FROM relations AS r
                    WHERE r.target_key = name_key($1, h.name) AND r.target = h.name AND r.until IS NULL OFFSET 0
                ) AS r
                UNION ALL
                SELECT x.name, NULL, 9223372036854775807, 3 FROM unnest(f.there) AS x (name)
            ) AS c ORDER BY c.name, c.id, c.rank
        ) AS d
        WHERE d.rank IN (1, 2) AND EXISTS (
            SELECT 1 FROM cards AS k WHERE k.name_key = name_key($1, d.name) AND k.name = d.name AND k.until IS NULL OFFSET 0)
    ) AS n
    WHERE NOT w.is_over AND w.seen < $4::integer
)
SELECT forward, names, via FROM walk OFFSET 1;

-- name: relations_of_many
-- The relations that touch one of these names, oldest first.
WITH names AS MATERIALIZED (SELECT DISTINCT unnest($2::text[]) AS name)
SELECT r.id, r.source, r.target, r.type, r.created_at FROM names AS n CROSS JOIN LATERAL (
    SELECT * FROM relations AS r
    WHERE r.source_key = name_key($1, n.name) AND r.source = n.name AND r.until IS NULL OFFSET 0
) AS r
UNION
SELECT r.id, r.source, r.target, r.type, r.created_at FROM names AS n CROSS JOIN LATERAL (
    SELECT * FROM relations AS r
    WHERE r.target_key = name_key($1, n.name) AND r.target = n.name AND r.until IS NULL OFFSET 0
) AS r
ORDER BY 1;

-- name: relations_keyed
-- The relations with these keys: sources, targets and types.
SELECT r.id, r.source, r.target, r.type, r.created_at
FROM unnest($2::text[], $3::text[], $4::text[]) AS wanted (source, target, type)
CROSS JOIN LATERAL (
    SELECT * FROM relations AS r
    WHERE r.relation_key = relation_key($1, wanted.source, wanted.target, wanted.type) AND r.until IS NULL
        AND r.source = wanted.source AND r.target = wanted.target AND r.type = wanted.type
    LIMIT 1
) AS r
ORDER BY r.id;

-- name: relations_from
-- Relations from a name, perhaps with a given target and type.
SELECT id, source, target, type, created_at FROM relations
WHERE source_key = name_key($1, $2) AND source = $2
    AND ($3::text IS NULL OR target = $3) AND ($4::text IS NULL OR type = $4) AND until IS NULL
ORDER BY id;

-- name: relations_to
-- Relations to a name, perhaps of a given type.
SELECT id, source, target, type, created_at FROM relations
WHERE target_key = name_key($1, $2) AND target = $2 AND ($3::text IS NULL OR type = $3) AND until IS NULL
ORDER BY id;

-- name: relations_typed
-- Relations of a type, or all.
SELECT id, source, target, type, created_at FROM (
    SELECT * FROM relations
    WHERE $2::text IS NULL AND row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    UNION ALL
    SELECT * FROM relations WHERE type_key = name_key($1, $2) AND type = $2 AND until IS NULL
) AS r
ORDER BY row_key;

-- name: entity_types
-- The types of living entities, the most frequent first.
SELECT type, count(*) FROM cards
WHERE entity_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
GROUP BY type ORDER BY count(*) DESC, type;

-- name: types_in_use
-- The types of living entities, from one to the next.
WITH RECURSIVE kinds AS (
    (SELECT c.type_key, c.type FROM cards AS c WHERE c.workspace_id = $1 AND c.until IS NULL
    ORDER BY c.workspace_id, c.type_key LIMIT 1)
    UNION ALL
    SELECT n.type_key, n.type FROM kinds AS k CROSS JOIN LATERAL (
        SELECT c.type_key, c.type FROM cards AS c
        WHERE c.workspace_id = $1 AND c.type_key > k.type_key AND c.until IS NULL
        ORDER BY c.workspace_id, c.type_key LIMIT 1
    ) AS n
)
SELECT type COLLATE "C" FROM kinds ORDER BY 1;

-- name: newest_of_type
-- The names of the newest entities of a type.
SELECT name FROM cards WHERE type_key = name_key($1, $2::text) AND type = $2::text AND until IS NULL
ORDER BY entity_key DESC LIMIT $3::bigint;

-- name: relation_types
-- The types of living relations, the most frequent first.
SELECT type, count(*) FROM relations
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
GROUP BY type ORDER BY count(*) DESC, type;

-- fragment: living
-- How many rows live: those that were counted last, those created since then, without those ended since then.
-- `until IS NULL` would fit partial indexes, and without statistics PostgreSQL reads one of them whole.
    w.counted[1] + (
        SELECT count(*) FROM cards AS c
        WHERE c.row_key > row_key($1, w.counted_row) AND c.row_key <= last_key($1) AND coalesce(c.until, 0) = 0
    ) - (
        SELECT count(*) FROM cards AS c
        WHERE c.workspace_id = $1 AND c.until > w.counted_change AND c.id <= w.counted_row
    ),
    w.counted[2] + (
        SELECT count(*) FROM observations AS c
        WHERE c.row_key > row_key($1, w.counted_row) AND c.row_key <= last_key($1) AND coalesce(c.until, 0) = 0
    ) - (
        SELECT count(*) FROM observations AS c
        WHERE c.workspace_id = $1 AND c.until > w.counted_change AND c.id <= w.counted_row
    ),
    w.counted[3] + (
        SELECT count(*) FROM relations AS c
        WHERE c.row_key > row_key($1, w.counted_row) AND c.row_key <= last_key($1) AND coalesce(c.until, 0) = 0
    ) - (
        SELECT count(*) FROM relations AS c
        WHERE c.workspace_id = $1 AND c.until > w.counted_change AND c.id <= w.counted_row
    ),
    w.counted[4] + (
        SELECT count(*) FROM notes AS c
        WHERE c.row_key > row_key($1, w.counted_row) AND c.row_key <= last_key($1) AND coalesce(c.until, 0) = 0
    ) - (
        SELECT count(*) FROM notes AS c
        WHERE c.workspace_id = $1 AND c.until > w.counted_change AND c.id <= w.counted_row
    )

-- name: count_living
-- The same, for a reader.
SELECT
{living}
FROM workspaces AS w WHERE w.workspace_id = $1;

-- fragment: living_bytes
-- The bytes of the living facts, in the same way. Versions before this one counted no bytes: then all facts are read once.
    coalesce(w.counted[5], (
        SELECT sum(octet_length(c.text)) FROM observations AS c
        WHERE c.row_key BETWEEN row_key($1, 0) AND row_key($1, w.counted_row)
            AND (c.until IS NULL OR c.until > w.counted_change)
    ), 0) + (
        SELECT coalesce(sum(octet_length(c.text)), 0) FROM observations AS c
        WHERE c.row_key > row_key($1, w.counted_row) AND c.row_key <= last_key($1) AND coalesce(c.until, 0) = 0
    ) - (
        SELECT coalesce(sum(octet_length(c.text)), 0) FROM observations AS c
        WHERE c.workspace_id = $1 AND c.until > w.counted_change AND c.id <= w.counted_row
    )

-- name: stored_bytes
-- The bytes of the living facts, for a reader.
SELECT ({living_bytes})::bigint FROM workspaces AS w WHERE w.workspace_id = $1;

-- name: keep_counts
-- Count the living rows once for all later readers.
UPDATE workspaces AS w SET counted_row = w.last_row, counted_change = w.last_change, counted = ARRAY[
{living},
{living_bytes}
] WHERE w.workspace_id = $1;

-- name: forget_counts
-- Let the next count read all rows: ended ones that it would subtract are deleted.
UPDATE workspaces SET counted_row = 0, counted_change = 0, counted = '{0, 0, 0, 0, 0}' WHERE workspace_id = $1;

-- name: last_change
-- The last change: its id, its time, the last row id given out, and the last one that was counted.
SELECT last_change, last_at, last_row, counted_row FROM workspaces WHERE workspace_id = $1;

-- name: lock_workspace
-- Lock the workspace for a change, like the UPDATE that ends it: the last change, its time, the last row id, the last one that
-- was counted, and whether the workspace may be changed.
SELECT last_change, last_at, last_row, counted_row, is_active FROM workspaces WHERE workspace_id = $1 FOR NO KEY UPDATE;

-- name: record_change
-- Record a change, after all its rows, and notify followers if there are any.
WITH workspace AS (
    UPDATE workspaces SET last_change = $2, last_at = $3, last_row = $7
    WHERE workspace_id = $1
    RETURNING workspace_id
), change AS (
    INSERT INTO changes (workspace_id, id, at, actor, server, operation, last_row, key)
    SELECT workspace_id, $2, $3, $4::text, $5::text, $6::text, $7, $8::uuid FROM workspace
)
SELECT pg_notify('polymnia', $1::bigint::text) FROM followers WHERE workspace_id = $1 AND expires_at > now();

-- name: change_keyed
-- Whether the change with this random key was committed. It is one of the last.
SELECT id FROM changes WHERE row_key > row_key($1, $2) AND row_key <= last_key($1) AND key = $3;

-- name: insert_entities
-- Add identities.
INSERT INTO entities (workspace_id, id, uid, next_ordinal, updated_at, touched)
SELECT $1, e.*, $6 FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) AS e;

-- name: update_entities
-- Update the times of entities and the ordinals that their next observations get.
UPDATE entities AS e SET next_ordinal = greatest(e.next_ordinal, u.next_ordinal), updated_at = u.updated_at, touched = $5
FROM (
    SELECT id, max(next_ordinal) AS next_ordinal, max(updated_at) AS updated_at
    FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS u (id, next_ordinal, updated_at)
    GROUP BY id
) AS u
WHERE e.row_key = row_key($1, u.id);

-- name: touch_entities
-- Update the times of the entities with these names, whose own rows stay as they are.
UPDATE entities SET updated_at = $3, touched = $4
WHERE row_key = ANY (ARRAY(SELECT c.entity_key FROM {named_cards}));

-- name: insert_touches
-- Record the same for their history.
INSERT INTO updates (workspace_id, entity, change, at)
SELECT $1, c.entity, $4, $3 FROM {named_cards}
ON CONFLICT (workspace_id, entity, change) DO UPDATE SET at = excluded.at;

-- name: set_updated
-- Set the times at which entities from elsewhere (ids) were updated there.
UPDATE entities AS e SET updated_at = u.at
FROM unnest($2::text[], $3::bigint[]) AS u (uid, at)
WHERE e.uid_key = name_key($1, u.uid) AND e.uid = u.uid;

-- name: insert_cards
-- Add versions of entities' attributes. Tags and aliases come as array literals, folded texts last.
INSERT INTO cards (workspace_id, id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status,
    expires, since, folded)
SELECT $1, c.id, c.entity, c.name, c.type, c.summary, c.summary_at, c.tags::text[], c.created_at, c.aliases::text[], c.due,
    c.status, c.expires, $14, c.folded
FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::bigint[],
        $10::text[], $11::bigint[], $12::text[], $13::bigint[], $15::text[])
    AS c (id, entity, name, type, summary, summary_at, tags, created_at, aliases, due, status, expires, folded);

-- name: end_cards
-- End cards. A past version has no folded text: substring search finds living ones only.
UPDATE cards SET until = $3, folded = NULL
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: insert_observations
-- Add observations. Folded texts come last.
INSERT INTO observations (workspace_id, id, entity, ordinal, text, created_at, valid_at, source, expires, author, since, folded)
SELECT $1, o.id, o.entity, o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author, $11, o.folded
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[], $9::bigint[],
        $10::text[], $12::text[])
    AS o (id, entity, ordinal, text, created_at, valid_at, source, expires, author, folded);

-- name: end_observations
-- End single observations of entities: row ids, ordinals, and the ordinals of those that replace them, if any.
UPDATE observations AS o SET until = $5, folded = NULL, successor = ended.successor
FROM (
    SELECT found.row_key, u.successor FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS u (entity, ordinal, successor)
    CROSS JOIN LATERAL (
        SELECT o.row_key FROM observations AS o
        WHERE o.entity_key = row_key($1, u.entity) AND o.ordinal = u.ordinal AND o.until IS NULL LIMIT 1
    ) AS found
    OFFSET 0
) AS ended
WHERE o.row_key = ended.row_key;

-- name: end_observations_of
-- End all observations of entities.
UPDATE observations SET until = $3, folded = NULL
WHERE entity_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND coalesce(until, 0) = 0;

-- name: insert_relations
-- Add relations.
INSERT INTO relations (workspace_id, id, source, target, type, created_at, since)
SELECT $1, r.*, $7 FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS r;

-- name: end_relations
-- End relations: sources, targets and types.
UPDATE relations SET until = $5
WHERE row_key = ANY (ARRAY(
    SELECT r.row_key FROM unnest($2::text[], $3::text[], $4::text[]) AS u (source, target, type)
    CROSS JOIN LATERAL (
        SELECT r.row_key FROM relations AS r
        WHERE r.relation_key = relation_key($1, u.source, u.target, u.type) AND r.until IS NULL
            AND r.source = u.source AND r.target = u.target AND r.type = u.type LIMIT 1
    ) AS r
));

-- name: insert_notes
-- Add versions of vault notes. Tags come as array literals, folded texts last.
INSERT INTO notes (workspace_id, id, key, text, tags, created_at, updated_at, since, folded)
SELECT $1, n.id, n.key, n.text, n.tags::text[], n.created_at, n.updated_at, $8, n.folded
FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $9::text[])
    AS n (id, key, text, tags, created_at, updated_at, folded);

-- name: insert_note_tags
-- Add the tags of the living vault notes that a change created.
INSERT INTO note_tags (workspace_id, tag, note)
SELECT DISTINCT n.workspace_id, t.tag, n.id FROM notes AS n CROSS JOIN LATERAL unnest(n.tags) AS t (tag)
WHERE n.row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: end_notes
-- End vault notes.
UPDATE notes SET until = $3, folded = NULL
WHERE row_key = ANY (ARRAY(SELECT n.row_key FROM {keyed_notes}));

-- name: delete_note_tags
-- Delete the tags of vault notes, before they end.
DELETE FROM note_tags WHERE note_key = ANY (ARRAY(SELECT n.row_key FROM {keyed_notes}));

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
-- Remove the passages that a change ended from the words, the vectors and the totals. A note keeps its client's vector.
WITH ended AS MATERIALIZED (
    SELECT id FROM cards WHERE workspace_id = $1 AND until = $2
    UNION ALL SELECT id FROM observations WHERE workspace_id = $1 AND until = $2
    UNION ALL SELECT id FROM notes WHERE workspace_id = $1 AND until = $2
), removed AS (
    DELETE FROM words AS w WHERE w.workspace_id = $1 AND w.passage = ANY (ARRAY(SELECT id FROM ended))
    RETURNING w.length
), compared AS (
    DELETE FROM vectors AS v
    WHERE v.workspace_id = $1 AND v.passage = ANY (ARRAY(SELECT id FROM ended)) AND v.raw IS NULL
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

-- name: delete_named_vectors
-- Delete the vectors of entities' observations that were made with their names or types, which have changed.
DELETE FROM vectors WHERE workspace_id = $1
    AND passage = ANY (ARRAY(
        SELECT id FROM observations
        WHERE entity_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NULL))
    AND template = ANY (ARRAY(
        SELECT id FROM templates
        WHERE workspace_id = $1 AND (template = '{text}' OR template LIKE '%{name}%' OR template LIKE '%{type}%')));

-- name: insert_client_vector
-- Add the vector that a client supplied for a passage, as it came and as it is compared.
INSERT INTO vectors (workspace_id, model, template, passage, raw, vector)
SELECT $1, m.id, 1, $3::bigint, $4::bytea, $5::halfvec FROM models AS m WHERE m.workspace_id = $1 AND m.identity = $2::text;

-- name: apply_settings
-- Set settings of the connection, or of the transaction alone: names and values.
SELECT set_config(s.name, s.value, $3::boolean) FROM unnest($1::text[], $2::text[]) AS s (name, value);

-- name: has_schema
-- Whether a Polymnia has been here before.
SELECT to_regclass('polymnia.migrations') IS NOT NULL;

-- name: schema_state
-- The newest migration that was applied, and which schema a program must know to use the database. As JSON, because the
-- column is younger than the table.
SELECT coalesce(max(m.number), 0), coalesce(max(coalesce((to_jsonb(m) ->> 'usable_by')::integer, m.number)), 0)
FROM polymnia.migrations AS m;

-- name: lock_migrations
-- Wait until no other process changes the schema.
SELECT pg_advisory_xact_lock($1);

-- name: migration_timeouts
-- Let a migration take as long as it needs, but not wait for a lock while others wait behind it.
SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '2s', true);

-- name: try_lock_indexes
-- Whether no other process builds the indexes of a migration. Nothing waits for it: a build waits for every statement before it.
SELECT pg_try_advisory_lock($1);

-- name: has_broken_index
-- Whether there is an index of this name whose build was interrupted.
SELECT EXISTS (
    SELECT 1 FROM pg_index WHERE indexrelid = to_regclass('polymnia.' || $1::text) AND NOT indisvalid
);

-- name: record_migration
-- Record that a migration was applied.
INSERT INTO migrations (number) VALUES ($1);

-- name: record_usable_by
-- Record which schema a program must know to use the database after a migration.
UPDATE migrations SET usable_by = $2 WHERE number = $1;

-- name: missing_extensions
-- The extensions that were not created yet.
SELECT n FROM unnest(ARRAY['vector', 'pg_trgm', 'btree_gin']) AS n
WHERE NOT EXISTS (SELECT 1 FROM pg_extension AS e WHERE e.extname = n);

-- name: backend
-- The process of the server that answers. A pooler names another one at the login.
SELECT pg_backend_pid();

-- name: grant_schema
-- Let a role use everything: rows, sequences and functions, and nothing that changes the schema.
DO $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA polymnia TO %1$I', current_setting('polymnia.grantee'));
    EXECUTE format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA polymnia TO %1$I',
        current_setting('polymnia.grantee'));
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA polymnia TO %1$I', current_setting('polymnia.grantee'));
    EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA polymnia TO %1$I', current_setting('polymnia.grantee'));
    IF current_setting('server_version_num')::integer >= 170000 THEN  -- VACUUM after a purge
        EXECUTE format('GRANT MAINTAIN ON ALL TABLES IN SCHEMA polymnia TO %1$I', current_setting('polymnia.grantee'));
    END IF;
END
$$;

-- name: set_grantee
-- The role that `grant_schema` is about: a DO block has no parameters.
SELECT set_config('polymnia.grantee', $1::text, true);

-- name: imitate_18
-- Let the first migration run on servers that lack two parts of PostgreSQL 18. A later one no longer needs them.
DO $$
BEGIN
    CREATE SCHEMA IF NOT EXISTS polymnia;
    CREATE FUNCTION polymnia.casefold(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN lower($1);
    CREATE COLLATION polymnia.pg_unicode_fast FROM pg_catalog."C";
END
$$;

-- name: analyze_tables
-- Update the statistics of the planner.
SELECT polymnia.analyze_tables();

-- name: has_row_security
-- Whether the rows are protected, and whether this role passes by the protection.
SELECT c.relrowsecurity, r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, c.relowner, 'USAGE')
FROM pg_class AS c CROSS JOIN pg_roles AS r WHERE c.oid = 'entities'::regclass AND r.rolname = current_user;

-- name: enable_row_security
-- Let every role but the owner of the tables see only the rows of the workspace that its transaction has named. Without a
-- name it is an error to look at them: an empty memory would be worse. No index can use the condition: with an equality
-- the planner might read the whole workspace for each row.
DO $$
DECLARE found regclass;
BEGIN
    FOR found IN
        SELECT c.oid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'catalogue'
    LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', found);
        EXECUTE format('DROP POLICY IF EXISTS one_workspace ON %s', found);
        EXECUTE format('CREATE POLICY one_workspace ON %s USING '
            '(workspace_id IS NOT DISTINCT FROM (SELECT current_setting(''polymnia.workspace'')::bigint))', found);
    END LOOP;
END
$$;

-- name: disable_row_security
-- Undo that. Tables of near vectors stay closed to all but the functions of their owner.
DO $$
DECLARE found regclass;
BEGIN
    FOR found IN
        SELECT c.oid FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', found);
    END LOOP;
END
$$;

-- name: workspace_named
-- One workspace by its name, with the id that its rows have and its generation.
SELECT uid, name, description, status, created_at, updated_at, workspace_id, generation
FROM catalogue WHERE folded = $1 AND name = $2;

-- name: workspaces_active
-- The active workspaces of these names, regardless of case, with the ids that their rows have and their generations.
SELECT name, workspace_id, generation FROM catalogue WHERE folded = ANY ($1::text[]) AND status = 'active';

-- name: workspaces_listed
-- The workspaces of a status, or all, by name; the first ones in an index if there is a limit.
SELECT uid, name, description, status, created_at, updated_at FROM (
    SELECT * FROM catalogue WHERE $1::text IS NULL OR status = $1 ORDER BY folded LIMIT $2
) AS c ORDER BY name;

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

-- name: delete_workspace
-- Delete everything of a workspace, whose writers wait. What refers to other rows goes first.
WITH vectors AS (DELETE FROM vectors WHERE workspace_id = $1),
    words AS (DELETE FROM words WHERE workspace_id = $1),
    terms AS (DELETE FROM terms WHERE workspace_id = $1),
    common_terms AS (DELETE FROM common_terms WHERE workspace_id = $1),
    best_passages AS (DELETE FROM best_passages WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    session_notes AS (DELETE FROM session_notes WHERE workspace_id = $1),
    session_members AS (DELETE FROM session_members WHERE workspace_id = $1),
    note_tags AS (DELETE FROM note_tags WHERE note_key BETWEEN row_key($1, 0) AND last_key($1)),
    relations AS (DELETE FROM relations WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    observations AS (DELETE FROM observations WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    cards AS (DELETE FROM cards WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    perspectives AS (DELETE FROM perspectives WHERE workspace_id = $1),
    updates AS (DELETE FROM updates WHERE workspace_id = $1),
    marks AS (DELETE FROM marks WHERE workspace_id = $1),
    purges AS (DELETE FROM purges WHERE workspace_id = $1),
    changes AS (DELETE FROM changes WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    leases AS (DELETE FROM leases WHERE workspace_id = $1),
    web_state AS (DELETE FROM web_state WHERE workspace_id = $1),
    reads AS (DELETE FROM reads WHERE workspace_id = $1),
    followers AS (DELETE FROM followers WHERE workspace_id = $1)
DELETE FROM workspaces WHERE workspace_id = $1;

-- name: delete_workspace_roots
-- Delete what the rows of a workspace referred to.
WITH notes AS (DELETE FROM notes WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    entities AS (DELETE FROM entities WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)),
    models AS (DELETE FROM models WHERE workspace_id = $1)
DELETE FROM templates WHERE workspace_id = $1;

-- name: delete_from_catalogue
-- Delete the name of a workspace.
DELETE FROM catalogue WHERE workspace_id = $1;

-- name: show_server
-- Hold a lock in the server's name as long as the connection lasts.
SELECT pg_advisory_lock($1);

-- name: is_server_running
-- Whether a connection holds the lock of a server's name.
SELECT EXISTS (
    SELECT 1 FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = (($2::bigint >> 32) & 4294967295)::oid AND objid = ($2::bigint & 4294967295)::oid
        AND $1::bigint IS NOT NULL
);

-- name: listen
-- Receive the notifications of writers.
LISTEN polymnia;

-- name: follow_workspace
-- Let writers notify for a minute.
INSERT INTO followers (workspace_id, expires_at) VALUES ($1, now() + interval '1 minute')
ON CONFLICT (workspace_id) DO UPDATE SET expires_at = excluded.expires_at;

-- name: vacuum
-- Free the space of deleted rows, and update the statistics of the planner. Another server may be at it, or build an index: what
-- it has locked is left to autovacuum.
VACUUM (ANALYZE, SKIP_LOCKED) polymnia.changes, polymnia.entities, polymnia.cards, polymnia.observations,
    polymnia.relations, polymnia.notes, polymnia.note_tags, polymnia.session_notes, polymnia.words, polymnia.terms,
    polymnia.common_terms, polymnia.best_passages, polymnia.vectors;

-- name: count_problems
-- Observations without an entity, passages that a search by words does not find, indexed ones that do not live, how far the
-- totals of the index are off, and vectors of a wrong length. Only damage makes them.
WITH living AS (
    SELECT id FROM cards WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    UNION ALL SELECT id FROM observations WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    UNION ALL SELECT id FROM notes WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
), indexed AS (
    SELECT passage, length FROM words WHERE workspace_id = $1
)
SELECT
    (SELECT count(*) FROM observations AS o
        WHERE o.row_key BETWEEN row_key($1, 0) AND last_key($1) AND o.until IS NULL AND NOT EXISTS (
            SELECT 1 FROM cards AS c WHERE c.entity_key = o.entity_key AND c.until IS NULL)),
    (SELECT count(*) FROM (SELECT id FROM living EXCEPT SELECT passage FROM indexed) AS missing),
    (SELECT count(*) FROM (SELECT passage FROM indexed EXCEPT SELECT id FROM living) AS stray),
    w.passages - (SELECT count(*) FROM indexed),
    w.words - (SELECT coalesce(sum(length), 0)::bigint FROM indexed),
    (SELECT count(*) FROM vectors AS v JOIN models AS m ON m.workspace_id = $1 AND m.id = v.model
        WHERE v.workspace_id = $1 AND vector_dims(v.vector::vector) <> m.dimension)
FROM workspaces AS w WHERE w.workspace_id = $1;

-- name: tables_with_texts
-- The tables with a row that has one of the texts, living or not: an erasure is verified by it. Of `terms`, words of the texts
-- that no passage has any more.
WITH stored AS (
    SELECT 'cards' AS place, concat_ws(E'\n', name, type, summary, tags::text, aliases::text, folded) AS content FROM cards
    WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)
    UNION ALL SELECT 'observations', concat_ws(E'\n', text, source, folded) FROM observations
    WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)
    UNION ALL SELECT 'relations', concat_ws(E'\n', source, type, target) FROM relations
    WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)
    UNION ALL SELECT 'notes', concat_ws(E'\n', key, text, tags::text, folded) FROM notes
    WHERE row_key BETWEEN row_key($1, 0) AND last_key($1)
    UNION ALL SELECT 'session_notes', concat_ws(E'\n', key, text, tags::text) FROM session_notes WHERE workspace_id = $1
    UNION ALL SELECT 'note_tags', tag FROM note_tags WHERE workspace_id = $1
)
SELECT DISTINCT s.place FROM stored AS s, unnest($2::text[]) AS t (text) WHERE strpos(s.content, t.text) > 0
UNION
SELECT 'terms' FROM (
    SELECT term FROM terms WHERE workspace_id = $1
    EXCEPT SELECT unnest(tsvector_to_array(terms)) FROM words WHERE workspace_id = $1
) AS unused, unnest($2::text[]) AS t (text)
WHERE strpos(lower(t.text), unused.term) > 0;

-- name: changes_since
-- Changes after an id, oldest first; NULL means no limit.
SELECT id, at, actor, operation, server FROM changes
WHERE row_key > row_key($1, $2) AND row_key <= last_key($1) ORDER BY row_key LIMIT $3;

-- name: latest_changes
-- Changes between two ids, newest first, perhaps of some actors or operations; NULL allows any.
SELECT id, at, actor, operation, server FROM changes
WHERE row_key > row_key($1, $2) AND row_key < row_key($1, least($3, 1099511627775))
    AND ($4::text[] IS NULL OR actor = ANY ($4::text[]))
    AND ($5::text[] IS NULL OR operation = ANY ($5::text[]))
ORDER BY row_key DESC LIMIT $6;

-- name: changes_among
-- The same among some ids. Only these are read.
SELECT c.id, c.at, c.actor, c.operation, c.server
FROM (SELECT DISTINCT row_key($1, unnest($7::bigint[])) AS row_key) AS n
CROSS JOIN LATERAL (SELECT * FROM changes AS c WHERE c.row_key = n.row_key LIMIT 1) AS c
WHERE c.id > $2 AND c.id < $3 AND ($4::text[] IS NULL OR c.actor = ANY ($4::text[]))
    AND ($5::text[] IS NULL OR c.operation = ANY ($5::text[]))
ORDER BY c.id DESC LIMIT $6;

-- name: actor_names
-- Everyone who made a change.
SELECT DISTINCT actor COLLATE "C" AS name FROM changes
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) ORDER BY name;

-- fragment: named_before
-- The entities that have or had one of these names, with every name they had.
SELECT c.entity, c.name FROM cards AS c WHERE c.entity_key = ANY (ARRAY(
    SELECT n.entity_key FROM (SELECT DISTINCT unnest($2::text[]) AS name) AS t
    CROSS JOIN LATERAL (
        SELECT n.entity_key FROM cards AS n
        WHERE n.name_key = name_key($1, t.name) AND n.name = t.name AND n.until IS NULL
        UNION
        SELECT n.entity_key FROM cards AS n
        WHERE n.name_key = name_key($1, t.name) AND n.name = t.name AND n.until IS NOT NULL
    ) AS n
))

-- name: identities_named
-- The same, as a list.
{named_before};

-- name: changes_of
-- The changes that touched entities with some names, now or before, or relations and notes with one of their names.
WITH known AS MATERIALIZED (
    {named_before}
), names AS MATERIALIZED (SELECT name FROM known UNION SELECT unnest($2::text[]))
SELECT since, until FROM cards WHERE entity_key = ANY (ARRAY(SELECT row_key($1, known.entity) FROM known))
UNION
SELECT since, until FROM observations WHERE entity_key = ANY (ARRAY(SELECT row_key($1, known.entity) FROM known))
UNION
SELECT r.since, r.until FROM names AS n CROSS JOIN LATERAL (
    SELECT since, until FROM relations
    WHERE source_key = name_key($1, n.name) AND source = n.name AND until IS NULL
    UNION ALL
    SELECT since, until FROM relations
    WHERE target_key = name_key($1, n.name) AND target = n.name AND until IS NULL
    UNION ALL
    SELECT since, until FROM relations
    WHERE source_key = name_key($1, n.name) AND source = n.name AND until IS NOT NULL
    UNION ALL
    SELECT since, until FROM relations
    WHERE target_key = name_key($1, n.name) AND target = n.name AND until IS NOT NULL
    UNION ALL
    SELECT since, until FROM notes WHERE name_key = name_key($1, n.name) AND key = n.name AND until IS NULL
    UNION ALL
    SELECT since, until FROM notes WHERE name_key = name_key($1, n.name) AND key = n.name AND until IS NOT NULL
    OFFSET 0
) AS r;

-- name: authors_of
-- The changes that first wrote living passages (names or keys, and ordinals): a text that was deleted and came back still
-- has its first author.
SELECT w.name, w.ordinal, coalesce(first.author, ch.actor),
    CASE WHEN first.author IS NULL THEN ch.at ELSE first.at END, ch.id
FROM unnest($2::text[], $3::bigint[]) AS w (name, ordinal)
CROSS JOIN LATERAL (
    SELECT (SELECT min(f.since) FROM cards AS f WHERE f.entity_key = c.entity_key) AS change,
        NULL::text AS author, NULL::bigint AS at
    FROM cards AS c
    WHERE w.ordinal = 0 AND c.name_key = name_key($1, w.name) AND c.name = w.name AND c.until IS NULL
    UNION ALL
    SELECT (SELECT min(f.since) FROM observations AS f
        WHERE f.entity_key = o.entity_key AND f.ordinal = o.ordinal AND f.text = o.text), o.author, o.created_at
    FROM observations AS o
    WHERE w.ordinal > 0 AND o.ordinal = w.ordinal AND o.until IS NULL AND o.entity_key = (
        SELECT c.entity_key FROM cards AS c
        WHERE c.name_key = name_key($1, w.name) AND c.name = w.name AND c.until IS NULL)
    UNION ALL
    SELECT coalesce((SELECT min(f.since) FROM notes AS f
        WHERE f.name_key = n.name_key AND f.key = n.key AND f.until IS NOT NULL AND f.text = n.text), n.since), NULL, NULL
    FROM notes AS n
    WHERE w.ordinal < 0 AND n.name_key = name_key($1, w.name) AND n.key = w.name AND n.until IS NULL
    LIMIT 1
) AS first
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, first.change) LIMIT 1) AS ch;

-- name: change_at
-- The last change at or before a time. Ids decide the order. The clock may have been wrong in either direction: where the
-- times of changes contradict their order, the answer is the change that agrees with most of them.
WITH bounds AS (
    SELECT coalesce((SELECT min(id) FROM changes WHERE workspace_id = $1 AND at > $2) - 1, max(id), 0) AS low, coalesce(max(id), 0) AS high
    FROM changes WHERE workspace_id = $1 AND at <= $2
), votes AS (
    SELECT c.id, sum(CASE WHEN c.at <= $2 THEN 1 ELSE -1 END) OVER (ORDER BY c.id) AS agreement
    FROM bounds AS b JOIN changes AS c ON c.workspace_id = $1 AND c.id > b.low AND c.id <= b.high
)
SELECT coalesce((SELECT id FROM votes WHERE agreement >= 0 ORDER BY agreement DESC, id DESC LIMIT 1), low) FROM bounds;

-- name: last_change_before
-- The last change before a time, which is usually one of the last of all.
SELECT coalesce((
    SELECT id FROM changes WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND at < $2
    ORDER BY row_key DESC LIMIT 1), 0);

-- name: first_change_between
-- The first change from a time until another; NULL if there is none.
SELECT min(id) FROM changes WHERE workspace_id = $1 AND at >= $2 AND at <= $3;

-- name: latest_time
-- The latest time that a change has; 0 without changes.
SELECT coalesce(max(at), 0) FROM changes WHERE workspace_id = $1;

-- name: change_times
-- The times of changes.
SELECT id, at FROM changes WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: last_purge
-- The last change whose ended rows were purged.
SELECT coalesce(max(change), 0) FROM purges WHERE workspace_id = $1;

-- name: updates_until
-- When entities (row ids) counted as updated by changes up to one, where rows do not tell. LATERAL, because PostgreSQL 16
-- reads the whole workspace for a list of entities.
SELECT u.change, u.at, u.entity FROM (SELECT DISTINCT unnest($3::bigint[]) AS id) AS e CROSS JOIN LATERAL (
    SELECT * FROM updates AS u WHERE u.workspace_id = $1 AND u.entity = e.id AND u.change <= $2
    OFFSET 0
) AS u;

-- fragment: first_row
-- The key of the first row that changes ($2 to $3) created: rows are numbered through, and a change knows its last one.
row_key($1, 1 + coalesce((
    SELECT p.last_row FROM changes AS p
    WHERE p.row_key >= row_key($1, 0) AND p.row_key < row_key($1, $2) ORDER BY p.row_key DESC LIMIT 1), 0))

-- fragment: last_row
-- The key of the last one.
row_key($1, (SELECT p.last_row FROM changes AS p WHERE p.row_key = row_key($1, $3) LIMIT 1))

-- name: cards_changed
-- The cards that changes ($2 to $3) created or ended.
SELECT c.id, c.since, c.until, {entity_columns}
FROM cards AS c {entity_of_card}
WHERE c.row_key BETWEEN {first_row} AND {last_row}
UNION
SELECT c.id, c.since, c.until, {entity_columns}
FROM cards AS c {entity_of_card}
WHERE c.workspace_id = $1 AND c.until BETWEEN $2 AND $3
ORDER BY 1;

-- name: observations_changed
-- The observations that changes created or ended.
SELECT id, since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE row_key BETWEEN {first_row} AND {last_row}
UNION
SELECT id, since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE workspace_id = $1 AND until BETWEEN $2 AND $3
ORDER BY 1;

-- name: relations_changed
-- The relations that changes created or ended.
SELECT id, since, until, source, target, type, created_at FROM relations
WHERE row_key BETWEEN {first_row} AND {last_row}
UNION
SELECT id, since, until, source, target, type, created_at FROM relations
WHERE workspace_id = $1 AND until BETWEEN $2 AND $3
ORDER BY 1;

-- name: notes_changed
-- The vault notes that changes created or ended, with the vectors their clients gave.
WITH changed AS (
    SELECT * FROM notes WHERE row_key BETWEEN {first_row} AND {last_row}
    UNION
    SELECT * FROM notes WHERE workspace_id = $1 AND until BETWEEN $2 AND $3
)
SELECT n.id, n.since, n.until, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.raw FROM vectors AS v WHERE v.workspace_id = $1 AND v.passage = n.id AND v.raw IS NOT NULL)
FROM changed AS n ORDER BY n.id;

-- name: names_changed
-- Every version of the cards of entities whose observations changes created or ended, to know their names then.
SELECT entity, name, since, until FROM cards WHERE entity_key = ANY (ARRAY(
    SELECT o.entity_key FROM observations AS o WHERE o.row_key BETWEEN {first_row} AND {last_row}
    UNION
    SELECT o.entity_key FROM observations AS o WHERE o.workspace_id = $1 AND o.until BETWEEN $2 AND $3
)) ORDER BY id;

-- name: change_sizes
-- How many rows changes ended and created: an import has thousands, and a list only counts them.
WITH wanted AS (
    SELECT c.id AS change, row_key($1, c.last_row) AS last_key, row_key($1, coalesce((
        SELECT p.last_row FROM changes AS p
        WHERE p.row_key BETWEEN row_key($1, 0) AND row_key($1, c.id - 1) ORDER BY p.row_key DESC LIMIT 1), 0)) AS previous_key
    FROM changes AS c WHERE c.row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))))
)
SELECT change,
    (SELECT count(*) FROM cards WHERE workspace_id = $1 AND until = change),
    (SELECT count(*) FROM observations WHERE workspace_id = $1 AND until = change),
    (SELECT count(*) FROM relations WHERE workspace_id = $1 AND until = change),
    (SELECT count(*) FROM notes WHERE workspace_id = $1 AND until = change),
    (SELECT count(*) FROM cards WHERE row_key > previous_key AND row_key <= last_key),
    (SELECT count(*) FROM observations WHERE row_key > previous_key AND row_key <= last_key),
    (SELECT count(*) FROM relations WHERE row_key > previous_key AND row_key <= last_key),
    (SELECT count(*) FROM notes WHERE row_key > previous_key AND row_key <= last_key)
FROM wanted;

-- name: mark_named
-- A point of history by the name it was marked with.
SELECT change, at FROM marks WHERE workspace_id = $1 AND name = $2;

-- name: set_mark
-- Mark a point of history, in place of the last one with that name.
INSERT INTO marks (workspace_id, name, change, at) VALUES ($1, $2, $3, $4)
ON CONFLICT (workspace_id, name) DO UPDATE SET change = excluded.change, at = excluded.at;

-- name: insert_read
-- Record that somebody ($5) read facts with a tool ($6): names and numbers.
INSERT INTO reads (workspace_id, at, actor, tool, entity, ordinal)
SELECT $1, $4, $5, $6, c.entity, r.ordinal FROM unnest($2::text[], $3::bigint[]) AS r (name, ordinal)
CROSS JOIN LATERAL (
    SELECT c.entity FROM cards AS c
    WHERE c.name_key = name_key($1, r.name) AND c.name = r.name AND c.until IS NULL LIMIT 1
) AS c
ON CONFLICT DO NOTHING;

-- name: forget_reads
-- Delete the reads before a time.
DELETE FROM reads WHERE workspace_id = $1 AND at < $2;

-- name: reads_since
-- The reads since a time, newest first, with the names that the entities have now.
SELECT r.at, r.actor, r.tool, coalesce(c.name, '') AS entity, r.ordinal
FROM reads AS r LEFT JOIN LATERAL (
    SELECT c.name FROM cards AS c WHERE c.entity_key = row_key($1, r.entity) AND c.until IS NULL LIMIT 1
) AS c ON true
WHERE r.workspace_id = $1 AND r.at >= $2 ORDER BY r.at DESC, r.entity, r.ordinal;

-- name: entities_called
-- The entities that had one of these names at a change.
SELECT DISTINCT c.entity FROM (SELECT DISTINCT unnest($2::text[]) AS name) AS n
CROSS JOIN LATERAL (
    SELECT c.entity FROM cards AS c
    WHERE c.name_key = name_key($1, n.name) AND c.name = n.name AND c.until IS NULL AND c.since <= $3
    UNION ALL
    SELECT c.entity FROM cards AS c
    WHERE c.name_key = name_key($1, n.name) AND c.name = n.name
        AND c.until IS NOT NULL AND c.since <= $3 AND c.until > $3
    OFFSET 0
) AS c;

-- name: cards_until
-- The versions up to a change of the cards of some entities (row ids), to read a past state.
SELECT c.since, c.until, {entity_columns}, e.touched
FROM cards AS c {entity_of_card}
WHERE c.entity_key = ANY (ARRAY(SELECT row_key($1, unnest($3::bigint[])))) AND c.since <= $2;

-- name: observations_until
-- The versions up to a change of the observations of some entities (row ids).
SELECT since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE entity_key = ANY (ARRAY(SELECT row_key($1, unnest($3::bigint[])))) AND since <= $2;

-- name: all_cards_until
-- The versions up to a change of every card.
SELECT c.since, c.until, {entity_columns}, e.touched
FROM cards AS c {entity_of_card}
WHERE c.row_key BETWEEN row_key($1, 0) AND last_key($1) AND c.since <= $2;

-- name: all_observations_until
-- The versions up to a change of every observation.
SELECT since, until, entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND since <= $2;

-- name: relations_at
-- The relations that lived at a change.
SELECT id, source, target, type, created_at FROM relations
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND since <= $2 AND (until IS NULL OR until > $2)
ORDER BY row_key;

-- name: relations_of_at
-- The relations that touched one of the names at a change. The order of those that have ended makes the planner take the
-- index on the name: while it believes that none has ended, any index of such relations would do, read from end to end.
SELECT DISTINCT r.id, r.source, r.target, r.type, r.created_at
FROM (SELECT DISTINCT unnest($3::text[]) AS name) AS n
CROSS JOIN LATERAL (
    SELECT * FROM relations
    WHERE source_key = name_key($1, n.name) AND source = n.name AND until IS NULL AND since <= $2
    UNION ALL
    SELECT * FROM relations
    WHERE target_key = name_key($1, n.name) AND target = n.name AND until IS NULL AND since <= $2
    UNION ALL
    (SELECT * FROM relations
    WHERE source_key BETWEEN name_key($1, n.name) AND name_key($1, n.name) AND source = n.name
        AND until IS NOT NULL AND until > $2 AND since <= $2
    ORDER BY source_key)
    UNION ALL
    (SELECT * FROM relations
    WHERE target_key BETWEEN name_key($1, n.name) AND name_key($1, n.name) AND target = n.name
        AND until IS NOT NULL AND until > $2 AND since <= $2
    ORDER BY target_key)
    OFFSET 0
) AS r
ORDER BY 1;

-- name: notes_at
-- The vault notes that lived at a change.
SELECT id, key, text, tags, created_at, updated_at, NULL::bytea FROM notes
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND since <= $2 AND (until IS NULL OR until > $2)
ORDER BY created_at, id;

-- name: trashed_cards
-- The last card of each deleted entity, the latest deletion first. OFFSET 0 keeps the lookup for each row, here and below:
-- as a join, without statistics, every row would be compared with every other.
SELECT {entity_columns}, c.until, ch.at
FROM cards AS c {entity_of_card}
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, c.until) LIMIT 1) AS ch
WHERE c.workspace_id = $1 AND c.until IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM cards AS later
    WHERE later.entity_key = c.entity_key AND (later.until IS NULL OR later.until > c.until)
    OFFSET 0
)
ORDER BY c.until DESC, e.id;

-- name: ended_observations
-- The past versions of the observations of an entity that do not live, or that expired (until $3) after one was to replace them,
-- with the changes that ended them, the latest first.
SELECT o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author, o.successor, ch.id, ch.at, ch.actor, ch.operation
FROM observations AS o
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, o.until) LIMIT 1) AS ch
WHERE o.entity_key = row_key($1, $2) AND o.until IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM observations AS living
    WHERE living.entity_key = o.entity_key AND living.ordinal = o.ordinal AND living.until IS NULL
        AND (o.successor IS NULL OR living.expires IS NULL OR living.expires > $3)
    OFFSET 0
)
ORDER BY o.ordinal DESC, o.id DESC LIMIT $4;

-- name: ended_with
-- The observations of an entity that ended with a change.
SELECT entity, ordinal, text, created_at, valid_at, source, expires, author FROM observations
WHERE entity_key = row_key($1, $2) AND until = $3 ORDER BY ordinal;

-- name: trashed_observations
-- The last version of each observation that was deleted without its entity, the latest first, with its entity.
SELECT o.ordinal, o.text, o.created_at, o.valid_at, o.source, o.expires, o.author, ch.at, o.until, e.uid, c.name, c.until
FROM observations AS o
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, o.until) LIMIT 1) AS ch
CROSS JOIN LATERAL (SELECT * FROM entities AS e WHERE e.row_key = o.entity_key LIMIT 1) AS e
CROSS JOIN LATERAL (
    SELECT last.name, last.until FROM cards AS last
    WHERE last.entity_key = o.entity_key ORDER BY last.until DESC NULLS FIRST LIMIT 1
) AS c
WHERE o.workspace_id = $1 AND o.until IS NOT NULL AND o.until IS DISTINCT FROM c.until
    AND NOT EXISTS (
        SELECT 1 FROM observations AS later
        WHERE later.entity_key = o.entity_key AND later.ordinal = o.ordinal
            AND (later.until IS NULL OR later.until > o.until)
        OFFSET 0
    )
ORDER BY o.until DESC, o.id;

-- name: trashed_relations
-- The last version of each deleted relation, the latest first.
WITH last_versions AS MATERIALIZED (
    SELECT DISTINCT ON (relation_key) id, source, target, type, created_at, until, relation_key FROM relations
    WHERE workspace_id = $1 AND until IS NOT NULL
    ORDER BY relation_key, until DESC
)
SELECT r.id, r.source, r.target, r.type, r.created_at, r.until, ch.at
FROM last_versions AS r
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, r.until) LIMIT 1) AS ch
WHERE NOT EXISTS (
    SELECT 1 FROM relations AS living WHERE living.relation_key = r.relation_key AND living.until IS NULL
    OFFSET 0
)
ORDER BY r.until DESC, r.id;

-- name: trashed_notes
-- The last version of each deleted vault note, the latest first.
WITH last_versions AS MATERIALIZED (
    SELECT DISTINCT ON (name_key) id, key, text, tags, created_at, updated_at, until, name_key FROM notes
    WHERE workspace_id = $1 AND until IS NOT NULL
    ORDER BY name_key, until DESC
)
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.raw FROM vectors AS v WHERE v.workspace_id = $1 AND v.passage = n.id AND v.raw IS NOT NULL), ch.at, n.until
FROM last_versions AS n
CROSS JOIN LATERAL (SELECT * FROM changes AS ch WHERE ch.row_key = row_key($1, n.until) LIMIT 1) AS ch
WHERE NOT EXISTS (
    SELECT 1 FROM notes AS living WHERE living.name_key = n.name_key AND living.until IS NULL
    OFFSET 0
)
ORDER BY n.until DESC, n.id;

-- name: purge_cards
-- Delete the cards that ended at or before a change.
DELETE FROM cards WHERE workspace_id = $1 AND until <= $2 RETURNING id;

-- name: purge_observations
-- Delete the observations that ended at or before a change.
DELETE FROM observations WHERE workspace_id = $1 AND until <= $2 RETURNING id;

-- name: purge_relations
-- Delete the relations that ended at or before a change.
DELETE FROM relations WHERE workspace_id = $1 AND until <= $2 RETURNING id;

-- name: purge_notes
-- Delete the vault notes that ended at or before a change.
DELETE FROM notes WHERE workspace_id = $1 AND until <= $2 RETURNING id;

-- name: purge_entities
-- Delete the identities that have no rows left.
DELETE FROM entities AS e
WHERE e.row_key BETWEEN row_key($1, 0) AND last_key($1)
    AND NOT EXISTS (SELECT 1 FROM cards AS c WHERE c.entity_key = e.row_key OFFSET 0)
    AND NOT EXISTS (SELECT 1 FROM observations AS o WHERE o.entity_key = e.row_key OFFSET 0)
RETURNING e.id;

-- name: entities_to_purge
-- The entities that lose rows to a purge up to a change and lived after it.
SELECT DISTINCT c.entity FROM cards AS c
WHERE c.entity_key = ANY (ARRAY(
        SELECT entity_key FROM observations WHERE workspace_id = $1 AND until <= $2
        UNION
        SELECT entity_key FROM cards WHERE workspace_id = $1 AND until <= $2
    ))
    AND c.since <= $2 AND (c.until IS NULL OR c.until > $2);

-- name: forget_updates
-- Delete what the settled times of update of entities (row ids) replace.
DELETE FROM updates WHERE workspace_id = $1 AND entity = ANY ($2::bigint[]) AND change <= $3;

-- name: settle_updates
-- Record when entities (row ids) counted as updated as of a change.
INSERT INTO updates (workspace_id, entity, change, at)
SELECT $1, u.entity, $4, u.at FROM unnest($2::bigint[], $3::bigint[]) AS u (entity, at);

-- name: purge_updates
-- Delete the times of update of identities that are gone.
DELETE FROM updates AS u WHERE u.workspace_id = $1
    AND NOT EXISTS (SELECT 1 FROM entities AS e WHERE e.row_key = row_key($1, u.entity) OFFSET 0);

-- name: delete_vectors_of
-- Delete the vectors of passages whose texts are gone.
DELETE FROM vectors WHERE workspace_id = $1 AND passage = ANY ($2::bigint[]);

-- name: cards_of_entities
-- Every version of the cards of entities (row ids), to find what an erasure concerns.
SELECT id, entity, name, summary, since, until FROM cards
WHERE entity_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: uids_of
-- The ids of entities (row ids).
SELECT id, uid FROM entities WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: entities_merged_by
-- The entities that changes ended and that never came back: they were merged.
SELECT DISTINCT c.entity FROM cards AS c
WHERE c.workspace_id = $1 AND c.until = ANY ($2::bigint[])
    AND NOT EXISTS (SELECT 1 FROM cards AS later WHERE later.entity_key = c.entity_key AND later.since >= c.until);

-- name: facts_of
-- Every version of the facts of entities (row ids).
SELECT id, entity, ordinal, text, created_at, since, until FROM observations
WHERE entity_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[]))));

-- name: facts_with_texts
-- Every version of every fact with one of these texts, for an erasure.
SELECT id, entity, ordinal, text, created_at, since, until FROM observations
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND text = ANY ($2::text[]);

-- name: relations_naming
-- Every version of the relations with one of these names at an end.
SELECT r.id, r.source, r.target, r.type, r.created_at, r.since, r.until
FROM (SELECT DISTINCT unnest($2::text[]) AS name) AS n
CROSS JOIN LATERAL (
    SELECT * FROM relations WHERE source_key = name_key($1, n.name) AND source = n.name AND until IS NULL
    UNION
    SELECT * FROM relations WHERE target_key = name_key($1, n.name) AND target = n.name AND until IS NULL
    UNION
    SELECT * FROM relations WHERE source_key = name_key($1, n.name) AND source = n.name AND until IS NOT NULL
    UNION
    SELECT * FROM relations WHERE target_key = name_key($1, n.name) AND target = n.name AND until IS NOT NULL
) AS r;

-- name: notes_keyed
-- Every version of the vault notes with these keys.
SELECT n.id FROM (SELECT DISTINCT unnest($2::text[]) AS key) AS wanted
CROSS JOIN LATERAL (
    SELECT id FROM notes WHERE name_key = name_key($1, wanted.key) AND key = wanted.key AND until IS NULL
    UNION ALL
    SELECT id FROM notes WHERE name_key = name_key($1, wanted.key) AND key = wanted.key AND until IS NOT NULL
) AS n;

-- name: erase_facts
-- Replace the texts of facts (row ids) that have ended.
UPDATE observations SET text = '(erased)', source = NULL
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NOT NULL;

-- name: erase_cards
-- Replace the attributes of entities in cards (row ids) that have ended.
UPDATE cards SET name = '(erased)', type = '(erased)', summary = NULL, tags = NULL, aliases = NULL, status = NULL
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NOT NULL;

-- name: erase_summaries
-- Replace the summaries of cards (row ids) that have ended.
UPDATE cards SET summary = '(erased)'
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NOT NULL;

-- name: erase_relations
-- Replace the types of relations (row ids) that have ended, and these names at their ends.
UPDATE relations SET type = '(erased)',
    source = CASE WHEN source = ANY ($3::text[]) THEN '(erased)' ELSE source END,
    target = CASE WHEN target = ANY ($3::text[]) THEN '(erased)' ELSE target END
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NOT NULL;

-- name: erase_notes
-- Replace vault notes (row ids) that have ended.
UPDATE notes SET key = '(erased)', text = '(erased)', tags = NULL
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND until IS NOT NULL;

-- name: record_purge
-- Record that states up to this change can no longer be read.
INSERT INTO purges (workspace_id, change) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: insert_updates
-- Record when entities counted as updated by a change, if the change's rows do not tell: row ids and times.
INSERT INTO updates (workspace_id, entity, change, at)
SELECT $1, u.entity, $4, u.at FROM unnest($2::bigint[], $3::bigint[]) AS u (entity, at)
ON CONFLICT (workspace_id, entity, change) DO UPDATE SET at = excluded.at;

-- name: insert_own_updates
-- Record the times at which entities from elsewhere (ids) were updated there, for their history.
INSERT INTO updates (workspace_id, entity, change, at)
SELECT e.workspace_id, e.id, e.touched, u.at FROM unnest($2::text[], $3::bigint[]) AS u (uid, at)
CROSS JOIN LATERAL (
    SELECT * FROM entities AS e WHERE e.uid_key = name_key($1, u.uid) AND e.uid = u.uid LIMIT 1
) AS e
ON CONFLICT (workspace_id, entity, change) DO UPDATE SET at = excluded.at;

-- name: note_keyed
-- One vault note with the vector its client gave.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.raw FROM vectors AS v WHERE v.workspace_id = $1 AND v.passage = n.id AND v.raw IS NOT NULL)
FROM notes AS n WHERE n.name_key = name_key($1, $2) AND n.key = $2 AND n.until IS NULL;

-- name: notes_listed
-- A page of the vault notes with all of the different tags, created before a time, with keys between two texts.
-- NULL is any. A rewritten note keeps its place.
SELECT n.id, n.key, n.text, n.tags, n.created_at, n.updated_at, (
    SELECT v.raw FROM vectors AS v WHERE v.workspace_id = $1 AND v.passage = n.id AND v.raw IS NOT NULL)
FROM notes AS n
WHERE n.workspace_id = $1 AND n.until IS NULL AND ($3::bigint IS NULL OR n.created_at < $3)
    AND coalesce(n.tags, '{}') @> $2::text[] AND ($4::text IS NULL OR n.key >= $4 AND n.key < $5)
ORDER BY n.created_at, n.id LIMIT $6 OFFSET $7;

-- name: any_note
-- A row if the vault has a note.
SELECT 1 FROM notes WHERE workspace_id = $1 AND until IS NULL LIMIT 1;

-- name: notes_by_id
-- The vault notes that a search found, without vectors.
SELECT id, key, text, tags, created_at, updated_at, NULL::bytea FROM notes
WHERE row_key = ANY (ARRAY(SELECT row_key($1, unnest($2::bigint[])))) AND coalesce(until, 0) = 0;

-- name: notes_exactly
-- The vault notes whose key or whole text is the query.
SELECT id FROM notes WHERE name_key = name_key($1, $2) AND key = $2 AND until IS NULL
UNION
SELECT id FROM notes WHERE content_key = name_key($1, $2) AND text = $2 AND until IS NULL;

-- name: notes_tagged
-- The ids of the vault notes that have all of the different tags.
SELECT t.note FROM note_tags AS t
WHERE t.tag_key = ANY (ARRAY(SELECT name_key($1, unnest($2::text[])))) AND t.tag = ANY ($2::text[])
GROUP BY t.note HAVING count(*) = cardinality($2::text[]);

-- name: newest_notes
-- The ids of the newest vault notes.
SELECT id FROM notes
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL ORDER BY row_key DESC LIMIT $2;

-- name: session_notes
-- All notes of one session, oldest first: there are few.
SELECT id, key, text, tags, created_at, updated_at, embedding FROM session_notes
WHERE workspace_id = $1 AND text_key(owner) = text_key($2) AND text_key(session) = text_key($3) ORDER BY id;

-- name: join_session
-- Record that a conversation uses a session now.
INSERT INTO session_members (workspace_id, member, owner, session, server, used_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (workspace_id, text_key(member), text_key(owner), text_key(session))
DO UPDATE SET server = excluded.server, used_at = excluded.used_at;

-- name: has_joined
-- Whether a conversation uses a session or, with a time, one that it has not used since then.
SELECT EXISTS (
    SELECT 1 FROM session_members
    WHERE workspace_id = $1 AND text_key(member) = text_key($2) AND ($3::bigint IS NULL OR used_at < $3));

-- name: leave_sessions
-- Remove a conversation from its sessions or, with a time, from those that it has not used since then.
DELETE FROM session_members
WHERE workspace_id = $1 AND text_key(member) = text_key($2) AND ($3::bigint IS NULL OR used_at < $3);

-- name: remove_server
-- Remove all conversations of a server that has died.
DELETE FROM session_members WHERE workspace_id = $1 AND server = $2;

-- name: session_members
-- The servers that use each session.
SELECT server, owner, session FROM session_members WHERE workspace_id = $1;

-- name: sessions
-- The sessions that have notes.
SELECT DISTINCT owner, session FROM session_notes WHERE workspace_id = $1;
