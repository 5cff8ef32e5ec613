-- usable by: 5
-- Row-level security that keeps the indexes. Below a policy PostgreSQL uses an index only for operators that are marked as
-- leakproof, which `@@`, LIKE and the distance of vectors are not: a search then reads every row of the table. So searches
-- run as the owner of the tables, whom no policy binds, in functions that check the workspace themselves.
--
-- The server's role must therefore be another one than the owner of the tables.

-- The workspace, unless row-level security is on and the transaction has named another one, or none.
CREATE FUNCTION checked_workspace(workspace bigint) RETURNS bigint LANGUAGE plpgsql STABLE
SET search_path = polymnia, pg_temp AS $$
BEGIN
    IF (SELECT c.relrowsecurity FROM pg_class AS c WHERE c.oid = 'entities'::regclass)
        AND current_setting('polymnia.workspace')::bigint IS DISTINCT FROM workspace THEN
        RAISE insufficient_privilege USING MESSAGE = 'this transaction is about another workspace';
    END IF;
    RETURN workspace;
END
$$;

-- The passages that match a query, and how many words they have.
CREATE FUNCTION matching_words(workspace bigint, query tsquery) RETURNS TABLE (passage bigint, length integer)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN QUERY SELECT w.passage, w.length FROM words AS w WHERE w.workspace_id = checked AND w.terms @@ query;
END
$$;

-- How many passages match a query.
CREATE FUNCTION count_words(workspace bigint, query tsquery) RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN (SELECT count(*) FROM words AS w WHERE w.workspace_id = checked AND w.terms @@ query);
END
$$;

-- The texts of living passages of some kinds that match a pattern. The expressions are those of the trigram indexes.
CREATE FUNCTION matching_texts(workspace bigint, pattern text, kinds text[])
RETURNS TABLE (id bigint, entity bigint, first text, second text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    IF 'card' = ANY (kinds) THEN
        RETURN QUERY SELECT c.id, c.entity, c.name, c.type FROM cards AS c
        WHERE c.workspace_id = checked AND c.until IS NULL
            AND coalesce(c.folded, lower(c.name || E'\n' || c.type)) LIKE pattern;
    END IF;
    IF 'observation' = ANY (kinds) THEN
        RETURN QUERY SELECT o.id, o.entity, o.text, '' FROM observations AS o
        WHERE o.workspace_id = checked AND o.until IS NULL AND coalesce(o.folded, lower(o.text)) LIKE pattern;
    END IF;
    IF 'note' = ANY (kinds) THEN
        RETURN QUERY SELECT n.id, NULL::bigint, n.key, n.text FROM notes AS n
        WHERE n.workspace_id = checked AND n.until IS NULL
            AND coalesce(n.folded, lower(n.key || E'\n' || n.text)) LIKE pattern;
    END IF;
END
$$;

-- The functions that rank, behind ones that check. Called directly, they are bound by the policies.
ALTER FUNCTION word_scores RENAME TO rank_words;
CREATE FUNCTION word_scores(
    workspace bigint, query tsquery, lexemes text[], queries tsquery[], labels text[], weights float8[], among bigint[]
) RETURNS TABLE (passage bigint, score float8)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 10 SET search_path = polymnia, public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM rank_words(checked_workspace(workspace), query, lexemes, queries, labels, weights, among);
END
$$;
ALTER FUNCTION nearest_vectors RENAME TO rank_vectors;
CREATE FUNCTION nearest_vectors(workspace bigint, model bigint, template bigint, question vector, k integer)
RETURNS TABLE (passage bigint, cosine float8)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM rank_vectors(checked_workspace(workspace), model, template, question, k);
END
$$;

-- Protection that is on gets the new policy: one that no index can use, because with an equality the planner would again
-- read the whole workspace for each row.
DO $$
DECLARE protected regclass;
BEGIN
    FOR protected IN
        SELECT c.oid FROM pg_class AS c
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind IN ('r', 'p') AND c.relrowsecurity
    LOOP
        EXECUTE format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('DROP POLICY IF EXISTS one_workspace ON %s', protected);
        EXECUTE format('CREATE POLICY one_workspace ON %s USING '
            '(workspace_id IS NOT DISTINCT FROM (SELECT current_setting(''polymnia.workspace'')::bigint))', protected);
    END LOOP;
END
$$;

-- Searches go by the inverted indexes, whatever the planner believes: a B-tree that starts with the workspace would find all
-- of its rows, and only a bitmap can combine the workspace with words or trigrams.
ALTER FUNCTION rank_words SET enable_indexscan = off;
ALTER FUNCTION rank_words SET enable_indexonlyscan = off;
ALTER FUNCTION rank_words SET enable_seqscan = off;
ALTER FUNCTION matching_words SET enable_indexscan = off;
ALTER FUNCTION matching_words SET enable_indexonlyscan = off;
ALTER FUNCTION count_words SET enable_indexscan = off;
ALTER FUNCTION count_words SET enable_indexonlyscan = off;
ALTER FUNCTION matching_texts SET enable_indexscan = off;
ALTER FUNCTION matching_texts SET enable_indexonlyscan = off;
