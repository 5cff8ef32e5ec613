-- Every lookup goes by one column that holds the workspace too, so that it fits one index only. While the planner believes
-- that a workspace has about one row (right after a bulk load, or with thousands of small workspaces), all indexes that
-- start with workspace_id cost the same to it, and it reads the whole workspace for each row (decision 31).
--
-- A row key has 23 bits of workspace and 40 bits of row id. A hash stands for a text, with its workspace: an index entry
-- cannot be longer than a third of a page, and a name can. The columns are stored, not computed by an index, because
-- row-level security uses no index on an expression.

CREATE FUNCTION row_key(workspace bigint, id bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN workspace << 40 | id;
CREATE FUNCTION last_key(workspace bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN workspace << 40 | 1099511627775;
CREATE FUNCTION name_key(workspace bigint, name text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN md5(workspace::text || ':' || name)::uuid;
CREATE FUNCTION relation_key(workspace bigint, source text, target text, type text) RETURNS uuid
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN md5(workspace::text || ':' || md5(source) || md5(target) || md5(type))::uuid;

ALTER TABLE catalogue ADD CHECK (workspace_id BETWEEN 1 AND 8388607);
ALTER TABLE workspaces ADD CHECK (last_row <= 1099511627775);

-- Folded texts for substring search, written by Python; NULL where `lower` makes the same, which changes ASCII letters
-- only in the collation "C". Until now a function of PostgreSQL 18 folded them.
ALTER TABLE cards ADD COLUMN folded text COLLATE "C";
ALTER TABLE observations ADD COLUMN folded text COLLATE "C";
ALTER TABLE notes ADD COLUMN folded text COLLATE "C";
DROP INDEX cards_trigrams, observations_trigrams, notes_trigrams;
UPDATE cards SET folded = folded(name || E'\n' || type)
WHERE until IS NULL AND folded(name || E'\n' || type) <> lower(name || E'\n' || type);
UPDATE observations SET folded = folded(text) WHERE until IS NULL AND folded(text) <> lower(text);
UPDATE notes SET folded = folded(key || E'\n' || text)
WHERE until IS NULL AND folded(key || E'\n' || text) <> lower(key || E'\n' || text);
DROP FUNCTION folded(text);
DROP FUNCTION IF EXISTS polymnia.casefold(text);
DROP COLLATION IF EXISTS polymnia.pg_unicode_fast;

-- Foreign keys first: they depend on the primary keys that go.
ALTER TABLE cards DROP CONSTRAINT cards_workspace_id_entity_fkey;
ALTER TABLE observations DROP CONSTRAINT observations_workspace_id_entity_fkey;
ALTER TABLE note_tags DROP CONSTRAINT note_tags_workspace_id_note_fkey;
DROP INDEX entities_by_uid, cards_living, cards_past, cards_of, cards_living_of;
DROP INDEX observations_living, observations_of, observations_by_source;
DROP INDEX relations_living, relations_by_target, relations_past, relations_past_by_target;
DROP INDEX notes_living, notes_past, notes_by_text, note_tags_by_tag, note_tags_of, words_terms;

ALTER TABLE changes
    DROP CONSTRAINT changes_pkey,
    ADD COLUMN row_key bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY;

ALTER TABLE entities
    DROP CONSTRAINT entities_pkey,
    ADD COLUMN row_key bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY,
    ADD COLUMN uid_key uuid   GENERATED ALWAYS AS (name_key(workspace_id, uid)) STORED;
CREATE UNIQUE INDEX entities_by_uid ON entities (uid_key);

ALTER TABLE cards
    DROP CONSTRAINT cards_pkey,
    ADD COLUMN row_key    bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY,
    ADD COLUMN entity_key bigint GENERATED ALWAYS AS (row_key(workspace_id, entity)) STORED REFERENCES entities (row_key),
    ADD COLUMN name_key   uuid   GENERATED ALWAYS AS (name_key(workspace_id, name)) STORED,
    ADD COLUMN type_key   uuid   GENERATED ALWAYS AS (name_key(workspace_id, type)) STORED;
CREATE UNIQUE INDEX cards_living    ON cards (name_key)             WHERE until IS NULL;
CREATE INDEX cards_past             ON cards (name_key)             WHERE until IS NOT NULL;
CREATE INDEX cards_of               ON cards (entity_key);
CREATE UNIQUE INDEX cards_living_of ON cards (entity_key)           WHERE until IS NULL;
CREATE INDEX cards_by_type          ON cards (type_key, entity_key) WHERE until IS NULL;

ALTER TABLE observations
    DROP CONSTRAINT observations_pkey,
    ADD COLUMN row_key    bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY,
    ADD COLUMN entity_key bigint GENERATED ALWAYS AS (row_key(workspace_id, entity)) STORED REFERENCES entities (row_key),
    ADD COLUMN source_key uuid   GENERATED ALWAYS AS (name_key(workspace_id, source)) STORED;
CREATE UNIQUE INDEX observations_living ON observations (entity_key, ordinal) WHERE until IS NULL;
CREATE INDEX observations_of            ON observations (entity_key, ordinal);
-- Observations of one source in the order they were written.
CREATE INDEX observations_by_source     ON observations (source_key, id) WHERE source IS NOT NULL AND until IS NULL;

ALTER TABLE relations
    DROP CONSTRAINT relations_pkey,
    ADD COLUMN row_key      bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY,
    ADD COLUMN source_key   uuid   GENERATED ALWAYS AS (name_key(workspace_id, source)) STORED,
    ADD COLUMN target_key   uuid   GENERATED ALWAYS AS (name_key(workspace_id, target)) STORED,
    ADD COLUMN type_key     uuid   GENERATED ALWAYS AS (name_key(workspace_id, type)) STORED,
    ADD COLUMN relation_key uuid   GENERATED ALWAYS AS (relation_key(workspace_id, source, target, type)) STORED;
CREATE UNIQUE INDEX relations_living  ON relations (relation_key)      WHERE until IS NULL;
CREATE INDEX relations_by_source      ON relations (source_key)        WHERE until IS NULL;
CREATE INDEX relations_by_target      ON relations (target_key)        WHERE until IS NULL;
CREATE INDEX relations_by_type        ON relations (type_key, row_key) WHERE until IS NULL;
CREATE INDEX relations_past           ON relations (source_key)        WHERE until IS NOT NULL;
CREATE INDEX relations_past_by_target ON relations (target_key)        WHERE until IS NOT NULL;

ALTER TABLE notes
    DROP CONSTRAINT notes_pkey,
    ADD COLUMN row_key     bigint GENERATED ALWAYS AS (row_key(workspace_id, id)) STORED PRIMARY KEY,
    ADD COLUMN name_key    uuid   GENERATED ALWAYS AS (name_key(workspace_id, key)) STORED,
    ADD COLUMN content_key uuid   GENERATED ALWAYS AS (name_key(workspace_id, text)) STORED;
CREATE UNIQUE INDEX notes_living ON notes (name_key)    WHERE until IS NULL;
CREATE INDEX notes_past          ON notes (name_key)    WHERE until IS NOT NULL;
CREATE INDEX notes_by_text       ON notes (content_key) WHERE until IS NULL;

ALTER TABLE note_tags
    ADD COLUMN tag_key  uuid   GENERATED ALWAYS AS (name_key(workspace_id, tag)) STORED,
    ADD COLUMN note_key bigint GENERATED ALWAYS AS (row_key(workspace_id, note)) STORED
        REFERENCES notes (row_key) ON DELETE CASCADE;
CREATE UNIQUE INDEX note_tags_by_tag ON note_tags (tag_key, note);
CREATE INDEX note_tags_of            ON note_tags (note_key);

-- The workspace in the index of words: without it a common word of a large workspace costs every other one in its
-- partition as much as the large one.
CREATE INDEX words_terms ON words USING gin (workspace_id, terms) WITH (gin_pending_list_limit = 256);

-- Substrings of the folded texts, by workspace: letters that are rare in one may be common in all.
CREATE INDEX cards_trigrams ON cards
    USING gin (workspace_id, (coalesce(folded, lower(name || E'\n' || type))) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;
CREATE INDEX observations_trigrams ON observations
    USING gin (workspace_id, (coalesce(folded, lower(text))) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;
CREATE INDEX notes_trigrams ON notes
    USING gin (workspace_id, (coalesce(folded, lower(key || E'\n' || text))) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;

-- One index for all lookups of vectors, where two began alike.
DROP INDEX vectors_of;
ALTER TABLE vectors
    DROP CONSTRAINT vectors_pkey,
    ADD PRIMARY KEY (workspace_id, passage, template, model);

-- Statistics after a bulk load, for a role that does not own the tables. A list of columns leaves out the expressions of
-- the trigram indexes, which take most of the time.
CREATE FUNCTION analyze_tables() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = polymnia, pg_temp AS $$
BEGIN
    ANALYZE entities (workspace_id, row_key, uid_key), changes (workspace_id, row_key),
        cards (workspace_id, row_key, entity_key, name_key, type_key, until),
        observations (workspace_id, row_key, entity_key, source_key, until),
        relations (workspace_id, row_key, source_key, target_key, type_key, relation_key, until),
        notes (workspace_id, row_key, name_key, until), words (workspace_id, passage), terms;
END
$$;
