-- usable by: 6
-- A search reads all entries that wait to be sorted into an inverted index, those of other workspaces too. With a quarter of
-- them, recalls between writes take a fifth less processor time in the database, and a write takes a tenth more.
DO $$
DECLARE
    inverted regclass;
BEGIN
    FOR inverted IN
        SELECT c.oid FROM pg_class AS c JOIN pg_am AS a ON a.oid = c.relam
        WHERE c.relnamespace = 'polymnia'::regnamespace AND c.relkind = 'i' AND a.amname = 'gin'
    LOOP
        EXECUTE format('ALTER INDEX %s SET (gin_pending_list_limit = 64)', inverted);
    END LOOP;
END
$$;
