-- usable by: 6
-- Connections no longer use bitmap scans: without statistics the planner reads the whole index of living rows into a bitmap
-- to look up ten of them. Only searches need bitmaps, because inverted indexes have no other scan.
ALTER FUNCTION rank_words SET enable_bitmapscan = on;
ALTER FUNCTION matching_words SET enable_bitmapscan = on;
ALTER FUNCTION count_words SET enable_bitmapscan = on;
ALTER FUNCTION matching_texts SET enable_bitmapscan = on;
ALTER FUNCTION term_postings SET enable_bitmapscan = on;
ALTER FUNCTION score_words SET enable_bitmapscan = on;

-- The newest passages that match a query, newest first, among the newest of all (`looked_at`). Where every term of a query is
-- very common, that takes a hundredth of the time that the index of words needs to find all of them.
CREATE FUNCTION newest_words(workspace bigint, query tsquery, looked_at bigint, newest bigint) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = polymnia, public, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    checked CONSTANT bigint := checked_workspace(workspace);
BEGIN
    RETURN QUERY SELECT l.passage FROM (
        SELECT w.passage, w.terms FROM words AS w WHERE w.workspace_id = checked
        ORDER BY w.passage DESC LIMIT looked_at
    ) AS l
    WHERE l.terms @@ query ORDER BY l.passage DESC LIMIT newest;
END
$$;
