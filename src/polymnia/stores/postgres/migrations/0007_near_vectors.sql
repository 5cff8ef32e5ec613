-- usable by: 6
-- A workspace with many vectors gets a table of its own for each model and template: near_WORKSPACE_MODEL_TEMPLATE, with a
-- copy of the vectors and an HNSW index. No statement about another workspace knows of it, so 500 of them cost the others
-- nothing. Partial indexes on `vectors` made every insert and every plan slower, and a partition for each workspace makes
-- every prepared statement lock all partitions (decision 31).
--
-- The functions run as the owner of the tables: servers need no right to create anything. Row-level security without a
-- policy keeps every other role from the copies themselves.

CREATE FUNCTION near_table(workspace bigint, model bigint, template bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN format('near_%s_%s_%s', workspace, model, template);

-- The index of a table is renamed to this when nothing is missing in it. Searches use the table from then on.
CREATE FUNCTION near_index(workspace bigint, model bigint, template bigint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN format('near_%s_%s_%s_complete', workspace, model, template);

-- Keep the tables up to date. Whoever completes a table takes the lock for itself: it then sees everything that was written
-- by those who did not see the table. The catalogue tells whether there is one, even in an old snapshot.
CREATE FUNCTION update_near_vectors() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    kind record;
    near text;
BEGIN
    FOR kind IN SELECT DISTINCT c.workspace_id, c.model, c.template FROM changed AS c LOOP
        PERFORM pg_advisory_xact_lock_shared(hashtext('near'), kind.workspace_id::integer);
        near := near_table(kind.workspace_id, kind.model, kind.template);
        CONTINUE WHEN to_regclass(near) IS NULL;
        IF TG_OP = 'INSERT' THEN
            EXECUTE format(
                'INSERT INTO %I SELECT c.passage, c.vector FROM changed AS c WHERE c.model = $1 AND c.template = $2
                ON CONFLICT (passage) DO UPDATE SET vector = excluded.vector', near
            ) USING kind.model, kind.template;
        ELSE
            EXECUTE format(
                'DELETE FROM %I WHERE passage = ANY (ARRAY(
                    SELECT c.passage FROM changed AS c WHERE c.model = $1 AND c.template = $2))', near
            ) USING kind.model, kind.template;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER vectors_added AFTER INSERT ON vectors
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION update_near_vectors();
CREATE TRIGGER vectors_deleted AFTER DELETE ON vectors
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION update_near_vectors();

-- Make the table, in place of one that was not completed, and its index. Writers go on; they do not see it yet.
CREATE FUNCTION build_near_vectors(workspace bigint, model bigint, template bigint, dimension integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    near CONSTANT text := near_table(checked_workspace(workspace), model, template);
BEGIN
    EXECUTE format('DROP TABLE IF EXISTS %I', near);
    EXECUTE format('CREATE TABLE %I (passage bigint PRIMARY KEY, vector halfvec(%s) NOT NULL)', near, dimension);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', near);
    EXECUTE format(
        'INSERT INTO %I SELECT v.passage, v.vector FROM vectors AS v
        WHERE v.workspace_id = $1 AND v.model = $2 AND v.template = $3', near
    ) USING workspace, model, template;
    EXECUTE format('CREATE INDEX ON %I USING hnsw (vector halfvec_cosine_ops)', near);
END
$$;

-- Add to the table what was written while it was built, and remove what was deleted.
CREATE FUNCTION refresh_near_vectors(workspace bigint, model bigint, template bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    near CONSTANT text := near_table(checked_workspace(workspace), model, template);
BEGIN
    EXECUTE format(
        'INSERT INTO %1$I SELECT v.passage, v.vector FROM vectors AS v
        WHERE v.workspace_id = $1 AND v.model = $2 AND v.template = $3
            AND NOT EXISTS (SELECT 1 FROM %1$I AS n WHERE n.passage = v.passage AND n.vector = v.vector)
        ON CONFLICT (passage) DO UPDATE SET vector = excluded.vector', near
    ) USING workspace, model, template;
    EXECUTE format(
        'DELETE FROM %I AS n WHERE NOT EXISTS (
            SELECT 1 FROM vectors AS v
            WHERE v.workspace_id = $1 AND v.passage = n.passage AND v.template = $3 AND v.model = $2)', near
    ) USING workspace, model, template;
END
$$;

-- Let searches use the table. Writers of the workspace's vectors wait meanwhile.
CREATE FUNCTION complete_near_vectors(workspace bigint, model bigint, template bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('near'), checked_workspace(workspace)::integer);
    PERFORM refresh_near_vectors(workspace, model, template);
    EXECUTE format(
        'ALTER INDEX %I RENAME TO %I',
        near_table(workspace, model, template) || '_vector_idx', near_index(workspace, model, template));
    -- The partial index that earlier versions made for the same vectors.
    EXECUTE format('DROP INDEX IF EXISTS vectors_near_%s_%s_%s', workspace, model, template);
END
$$;

-- Drop the tables of a workspace: all of them, or those of a model or a template.
CREATE FUNCTION drop_near_vectors(workspace bigint, model bigint, template bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    pattern CONSTANT text := format(
        '^near_%s_%s_%s$',
        checked_workspace(workspace), coalesce(model::text, '[0-9]+'), coalesce(template::text, '[0-9]+'));
    near regclass;
BEGIN
    FOR near IN
        SELECT c.oid FROM pg_class AS c
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind = 'r' AND c.relname ~ pattern
    LOOP
        EXECUTE format('DROP TABLE %s', near);
    END LOOP;
END
$$;

-- The nearest vectors of living passages: through the table of the workspace, or one by one. More vectors than asked for
-- are chosen by halves of floats and compared as floats. Without sorting PostgreSQL always uses the index.
CREATE OR REPLACE FUNCTION rank_vectors(workspace bigint, model bigint, template bigint, question vector, k integer)
RETURNS TABLE (passage bigint, cosine float8) LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    chosen CONSTANT integer := 2 * k + 20;
    dimension CONSTANT integer := vector_dims(question);
    vectors text := format(
        'vectors AS v WHERE v.workspace_id = %s AND v.model = %s AND v.template = %s', workspace, model, template);
BEGIN
    IF to_regclass(near_index(workspace, model, template)) IS NOT NULL THEN
        vectors := format('%I AS v', near_table(workspace, model, template));
    END IF;
    PERFORM set_config('hnsw.ef_search', least(greatest(chosen, 200), 1000)::text, true);
    RETURN QUERY EXECUTE format(
        'WITH chosen AS MATERIALIZED (
            SELECT v.passage, v.vector FROM %1$s
            ORDER BY v.vector::halfvec(%2$s) <=> $1::halfvec(%2$s) LIMIT %3$s
        )
        SELECT c.passage, 1 - (c.vector::vector <=> $1) FROM chosen AS c
        WHERE EXISTS (SELECT 1 FROM words AS w WHERE w.workspace_id = %4$s AND w.passage = c.passage)
        ORDER BY 2 DESC, 1 LIMIT %5$s',
        vectors, dimension, chosen, workspace, k
    ) USING question;
END
$$;
