-- usable by: 6
-- Which facts a client read, if the servers keep an audit of reads: no text, and the entity by its row id.
CREATE TABLE reads (
    workspace_id bigint NOT NULL,
    at           bigint NOT NULL,
    actor        text   NOT NULL,
    tool         text   NOT NULL,
    entity       bigint NOT NULL,
    ordinal      bigint NOT NULL,
    PRIMARY KEY (workspace_id, at, entity, ordinal, actor, tool)
);
-- As all tables of workspaces, if row-level security is on.
DO $$
BEGIN
    IF (SELECT c.relrowsecurity FROM pg_class AS c WHERE c.oid = 'entities'::regclass) THEN
        ALTER TABLE reads ENABLE ROW LEVEL SECURITY;
        CREATE POLICY one_workspace ON reads USING
            (workspace_id IS NOT DISTINCT FROM (SELECT current_setting('polymnia.workspace')::bigint));
    END IF;
END
$$;
