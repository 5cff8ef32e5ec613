-- usable by: 6
-- Terms that very many passages have, so that a search for them need not read them all, as in SQLite's schema. Counts and
-- lists cover the passages up to the ranked row; a workspace from before this schema is ranked by its next writes.
ALTER TABLE workspaces ADD COLUMN ranked_row bigint NOT NULL DEFAULT 0;

CREATE TABLE common_terms (
    workspace_id bigint  NOT NULL,
    term         text    COLLATE "C" NOT NULL,
    passages     bigint  NOT NULL,          -- ranked passages that have it
    listed       integer NOT NULL,          -- how many of them are listed
    bound        float8  NOT NULL,          -- the BM25 score of the worst one listed, without the term's rarity
    term_key     uuid    GENERATED ALWAYS AS (name_key(workspace_id, term)) STORED PRIMARY KEY
);
CREATE INDEX common_terms_of ON common_terms (workspace_id);

-- The best passages of each common term by BM25: how often they have it, and how many words they have.
CREATE TABLE best_passages (
    workspace_id bigint  NOT NULL,
    term_key     uuid    NOT NULL,
    passage      bigint  NOT NULL,
    count        integer NOT NULL,
    length       integer NOT NULL,
    row_key      bigint  GENERATED ALWAYS AS (row_key(workspace_id, passage)) STORED,
    PRIMARY KEY (term_key, passage)
);
CREATE INDEX best_passages_of ON best_passages (row_key);

-- Protection that is on covers the new tables too, and whoever may use the words may use them.
DO $$
DECLARE
    added text;
    grantee text;
BEGIN
    FOREACH added IN ARRAY ARRAY['common_terms', 'best_passages'] LOOP
        IF (SELECT c.relrowsecurity FROM pg_class AS c WHERE c.oid = 'entities'::regclass) THEN
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', added);
            EXECUTE format('CREATE POLICY one_workspace ON %I USING '
                '(workspace_id IS NOT DISTINCT FROM (SELECT current_setting(''polymnia.workspace'')::bigint))', added);
        END IF;
        FOR grantee IN
            SELECT DISTINCT g.grantee FROM information_schema.role_table_grants AS g
            WHERE g.table_schema = 'polymnia' AND g.table_name = 'words' AND g.privilege_type = 'INSERT'
                AND g.grantee <> current_user
        LOOP
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I', added, grantee);
        END LOOP;
    END LOOP;
END
$$;

-- Take passages that end from counts and lists. A term that is no longer common, or has lost half of its list, is forgotten:
-- it is searched for exactly until a later write lists its passages anew. A trigger, so that older servers do it too.
CREATE FUNCTION unlist_words() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = polymnia, public, pg_temp SET enable_seqscan = off AS $$
DECLARE
    workspace CONSTANT bigint := (SELECT r.workspace_id FROM removed AS r LIMIT 1);
BEGIN
    IF NOT EXISTS (SELECT 1 FROM common_terms AS c WHERE c.workspace_id = workspace) THEN
        RETURN NULL;
    END IF;
    WITH ended AS MATERIALIZED (
        SELECT name_key(workspace, t.term) AS term_key, count(*) AS passages
        FROM removed AS r CROSS JOIN LATERAL unnest(tsvector_to_array(r.terms)) AS t (term)
        WHERE r.passage <= (SELECT w.ranked_row FROM workspaces AS w WHERE w.workspace_id = workspace)
        GROUP BY 1
    )
    UPDATE common_terms AS c SET passages = c.passages - e.passages FROM ended AS e WHERE c.term_key = e.term_key;
    WITH unlisted AS (
        DELETE FROM best_passages AS b
        WHERE b.row_key = ANY (ARRAY(SELECT row_key(workspace, r.passage) FROM removed AS r))
        RETURNING b.term_key
    ), lost AS MATERIALIZED (
        SELECT u.term_key, count(*) AS listed FROM unlisted AS u GROUP BY 1
    )
    UPDATE common_terms AS c SET listed = c.listed - l.listed FROM lost AS l WHERE c.term_key = l.term_key;
    WITH thin AS (
        DELETE FROM common_terms AS c
        WHERE c.workspace_id = workspace AND (c.passages < 1000 OR c.listed < 500)
        RETURNING c.term_key
    )
    DELETE FROM best_passages AS b WHERE b.term_key = ANY (ARRAY(SELECT t.term_key FROM thin AS t));
    RETURN NULL;
END
$$;
CREATE TRIGGER unlist_words AFTER DELETE ON words
REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION unlist_words();

-- The passages after one row id and up to another: their words. The inner query goes by the primary key.
CREATE FUNCTION words_between(workspace bigint, after bigint, until bigint)
RETURNS TABLE (passage bigint, length integer, terms tsvector)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN QUERY SELECT w.passage, w.length, w.terms FROM words AS w
    WHERE w.workspace_id = checked AND w.passage > words_between.after AND w.passage <= words_between.until;
END
$$;

-- The passages up to a row id that have a term: how often, and how many words they have.
CREATE FUNCTION term_postings(workspace bigint, term text, query tsquery, until bigint)
RETURNS TABLE (passage bigint, count integer, length integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN QUERY SELECT w.passage, cardinality(t.positions), w.length
    FROM words AS w CROSS JOIN LATERAL unnest(w.terms) AS t
    WHERE w.workspace_id = checked AND w.terms @@ query AND w.passage <= until AND t.lexeme = term;
END
$$;

-- BM25 as FTS5 computes it, for passages that a query finds, from the rarity of each stem and the average length, which the
-- caller knows. Of many passages the newest are scored, if `newest` is given. So many are looked at for that: PostgreSQL
-- finds them in no order. If `among` is given, only these passages are looked at.
CREATE FUNCTION score_words(
    workspace bigint, query tsquery, lexemes text[], queries tsquery[], rarities float8[], average float8,
    among bigint[], newest bigint
) RETURNS TABLE (passage bigint, score float8)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10 SET search_path = polymnia, public, pg_temp
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN QUERY
    WITH found AS MATERIALIZED (
        (SELECT f.* FROM (
            SELECT w.passage, w.length, w.terms FROM words AS w
            WHERE among IS NULL AND w.workspace_id = checked AND w.terms @@ query
            LIMIT CASE WHEN newest IS NOT NULL THEN 20000 END
        ) AS f ORDER BY f.passage DESC LIMIT newest)
        UNION ALL
        SELECT f.* FROM (
            SELECT w.passage, w.length, w.terms FROM words AS w
            WHERE among IS NOT NULL AND w.workspace_id = checked AND w.passage = ANY (among)
            OFFSET 0
        ) AS f WHERE f.terms @@ query
    ), wanted AS MATERIALIZED (
        SELECT * FROM unnest(lexemes, queries, rarities) WITH ORDINALITY AS q (lexeme, query, rarity, number)
    ), hits AS MATERIALIZED (
        SELECT f.passage, f.length, q.number, q.rarity, coalesce(
            occurrences(ts_rank('{1, 1, 1, 1}'::float4[], f.terms, q.query)),
            (SELECT cardinality(t.positions) FROM unnest(f.terms) AS t WHERE t.lexeme = q.lexeme)
        )::float8 AS found
        FROM found AS f CROSS JOIN wanted AS q WHERE f.terms @@ q.query
    )
    SELECT h.passage, sum(
        h.rarity * ((h.found * 2.2) / (h.found + 1.2 * (0.25 + 0.75 * h.length / average))) ORDER BY h.number
    )
    FROM hits AS h WHERE h.found IS NOT NULL GROUP BY h.passage;
END
$$;

-- For observations without a source up to two before and one after in the same conversation: a few observations before and
-- after each (`steps`) are considered, if the same client wrote them and their times are at most `gap` apart. Ids are in
-- order of writing.
--
-- Without bitmaps: while the planner believes that a workspace has few rows, it collects all of them and sorts them, where
-- the primary key has the order and few are needed.
CREATE FUNCTION neighbours_in_time(workspace bigint, passages bigint[], steps bigint, gap bigint)
RETURNS TABLE (id bigint, before bigint[], after bigint[])
LANGUAGE plpgsql STABLE SET search_path = polymnia, public, pg_temp
SET enable_bitmapscan = off SET enable_sort = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT o.id,
        ARRAY(SELECT near.id FROM (
                SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n
                WHERE n.row_key > row_key(workspace, 0) AND n.row_key < o.row_key
                    AND n.until IS NULL AND n.source IS NULL
                ORDER BY n.row_key DESC LIMIT steps
            ) AS near
            WHERE abs(near.at - coalesce(o.valid_at, o.created_at)) <= gap AND EXISTS (
                SELECT 1 FROM changes AS made WHERE made.row_key = row_key(workspace, near.since)
                    AND made.actor = own.actor AND made.server = own.server)
            ORDER BY near.id DESC LIMIT 2),
        ARRAY(SELECT near.id FROM (
                SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n
                WHERE n.row_key > o.row_key AND n.row_key <= last_key(workspace)
                    AND n.until IS NULL AND n.source IS NULL
                ORDER BY n.row_key LIMIT steps
            ) AS near
            WHERE abs(near.at - coalesce(o.valid_at, o.created_at)) <= gap AND EXISTS (
                SELECT 1 FROM changes AS made WHERE made.row_key = row_key(workspace, near.since)
                    AND made.actor = own.actor AND made.server = own.server)
            ORDER BY near.id LIMIT 1)
    FROM unnest(passages) AS p (id)
    CROSS JOIN LATERAL (
        SELECT * FROM observations AS o WHERE o.row_key = row_key(workspace, p.id) AND o.source IS NULL LIMIT 1
    ) AS o
    CROSS JOIN LATERAL (
        SELECT * FROM changes AS own WHERE own.row_key = row_key(workspace, o.since) LIMIT 1
    ) AS own;
END
$$;

-- Searches take the index that finds the fewest entries. Entries of an index are dear to them: while the planner believes that
-- a workspace has one row, the inverted indexes of words and trigrams cost more than a B-tree that starts with the workspace,
-- which finds all of its rows.
ALTER FUNCTION rank_words SET cpu_index_tuple_cost = 1000;
ALTER FUNCTION matching_words SET cpu_index_tuple_cost = 1000;
ALTER FUNCTION count_words SET cpu_index_tuple_cost = 1000;
ALTER FUNCTION matching_texts SET cpu_index_tuple_cost = 1000;
ALTER FUNCTION term_postings SET cpu_index_tuple_cost = 1000;
ALTER FUNCTION score_words SET cpu_index_tuple_cost = 1000;
