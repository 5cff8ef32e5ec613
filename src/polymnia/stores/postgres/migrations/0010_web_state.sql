-- usable by: 6
-- What the web interface keeps for all servers beside a workspace, as JSON: saved questions and dismissed findings.
CREATE TABLE web_state (
    workspace_id bigint PRIMARY KEY,
    state        text   NOT NULL DEFAULT ''
);
-- As all tables of workspaces, if row-level security is on.
DO $$
BEGIN
    IF (SELECT c.relrowsecurity FROM pg_class AS c WHERE c.oid = 'entities'::regclass) THEN
        ALTER TABLE web_state ENABLE ROW LEVEL SECURITY;
        CREATE POLICY one_workspace ON web_state USING
            (workspace_id IS NOT DISTINCT FROM (SELECT current_setting('polymnia.workspace')::bigint));
    END IF;
END
$$;
