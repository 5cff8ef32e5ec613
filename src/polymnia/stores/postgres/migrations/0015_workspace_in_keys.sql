-- usable by: 6
-- Every primary, unique and foreign key holds the workspace, as tables need that are distributed or partitioned by it. It is
-- the last column: the first one still fits one index only (migration 5). In a database with rows, `build_indexes` makes these
-- indexes before the migration, while others read and write.
CREATE UNIQUE INDEX IF NOT EXISTS changes_key         ON changes (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS entities_key        ON entities (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS cards_key           ON cards (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS observations_key    ON observations (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS relations_key       ON relations (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS notes_key           ON notes (row_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS entities_uid        ON entities (uid_key, workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS cards_name          ON cards (name_key, workspace_id)                   WHERE until IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS cards_entity        ON cards (entity_key, workspace_id)                 WHERE until IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS observations_number ON observations (entity_key, ordinal, workspace_id) WHERE until IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS relations_identity  ON relations (relation_key, workspace_id)           WHERE until IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS notes_name          ON notes (name_key, workspace_id)                   WHERE until IS NULL;
CREATE UNIQUE INDEX IF NOT EXISTS note_tags_tag       ON note_tags (tag_key, note, workspace_id);

-- From one type of a workspace to the next.
CREATE INDEX IF NOT EXISTS cards_types ON cards (workspace_id, type_key) WHERE until IS NULL;

-- How many entities, facts, relations and notes lived after a change. What came and ended later is counted for every answer,
-- so that programs which do not know the columns may write, too.
ALTER TABLE workspaces
    ADD COLUMN counted        bigint[] NOT NULL DEFAULT '{0, 0, 0, 0}',
    ADD COLUMN counted_row    bigint   NOT NULL DEFAULT 0,
    ADD COLUMN counted_change bigint   NOT NULL DEFAULT 0;

-- No foreign keys between the large tables: each cost a lookup for every row written, `doctor` finds rows without an owner,
-- and none was ever refused.
ALTER TABLE cards        DROP CONSTRAINT cards_entity_key_fkey;
ALTER TABLE observations DROP CONSTRAINT observations_entity_key_fkey;
ALTER TABLE note_tags    DROP CONSTRAINT note_tags_note_key_fkey;

ALTER TABLE changes      DROP CONSTRAINT changes_pkey,      ADD CONSTRAINT changes_pkey      PRIMARY KEY USING INDEX changes_key;
ALTER TABLE entities     DROP CONSTRAINT entities_pkey,     ADD CONSTRAINT entities_pkey     PRIMARY KEY USING INDEX entities_key;
ALTER TABLE cards        DROP CONSTRAINT cards_pkey,        ADD CONSTRAINT cards_pkey        PRIMARY KEY USING INDEX cards_key;
ALTER TABLE observations DROP CONSTRAINT observations_pkey, ADD CONSTRAINT observations_pkey PRIMARY KEY USING INDEX observations_key;
ALTER TABLE relations    DROP CONSTRAINT relations_pkey,    ADD CONSTRAINT relations_pkey    PRIMARY KEY USING INDEX relations_key;
ALTER TABLE notes        DROP CONSTRAINT notes_pkey,        ADD CONSTRAINT notes_pkey        PRIMARY KEY USING INDEX notes_key;
DROP INDEX entities_by_uid, cards_living, cards_living_of, observations_living, relations_living, notes_living, note_tags_by_tag;

-- The lists of common terms are no longer used. Their tables stay, empty, while programs that know schema 9 may run.
DROP TRIGGER unlist_words ON words;
DROP FUNCTION unlist_words();
DELETE FROM best_passages;
DELETE FROM common_terms;
ALTER TABLE common_terms  DROP CONSTRAINT common_terms_pkey,  ADD PRIMARY KEY (term_key, workspace_id);
ALTER TABLE best_passages DROP CONSTRAINT best_passages_pkey, ADD PRIMARY KEY (term_key, passage, workspace_id);

-- The triggers that keep copies of near vectors up to date come with the first copy.
CREATE FUNCTION follow_vectors() RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = polymnia, public, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'vectors'::regclass AND tgname = 'vectors_added') THEN
        RETURN;
    END IF;
    CREATE TRIGGER vectors_added AFTER INSERT ON vectors
        REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION update_near_vectors();
    CREATE TRIGGER vectors_deleted AFTER DELETE ON vectors
        REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION update_near_vectors();
END
$$;
DO $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM pg_class
        WHERE relnamespace = 'polymnia'::regnamespace AND relkind = 'r' AND relname ~ '^near_[0-9]+_[0-9]+_[0-9]+$'
    ) THEN
        DROP TRIGGER vectors_added ON vectors;
        DROP TRIGGER vectors_deleted ON vectors;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION complete_near_vectors(workspace bigint, model bigint, template bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
BEGIN
    PERFORM follow_vectors();
    PERFORM pg_advisory_xact_lock(hashtext('near'), checked_workspace(workspace)::integer);
    PERFORM refresh_near_vectors(workspace, model, template);
    EXECUTE format(
        'ALTER INDEX %I RENAME TO %I',
        near_table(workspace, model, template) || '_vector_idx', near_index(workspace, model, template));
    -- The partial index that earlier versions made for the same vectors.
    EXECUTE format('DROP INDEX IF EXISTS vectors_near_%s_%s_%s', workspace, model, template);
END
$$;
