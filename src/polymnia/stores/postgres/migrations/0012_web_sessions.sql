-- usable by: 6
-- Logins to the web interface, so that any server answers whoever logged in at another one. Only hashes of the secrets in the
-- cookies are stored. They belong to no workspace, like the tokens.
CREATE TABLE web_sessions (
    hash      text   COLLATE "C" PRIMARY KEY,  -- SHA-256 of the secret, in hexadecimal
    principal text   NOT NULL,                 -- who logged in, as JSON
    used_at   bigint NOT NULL                  -- seconds since 1970
) WITH (fillfactor = 80);
CREATE INDEX web_sessions_by_use ON web_sessions (used_at);
-- Whoever may use the tokens may use them.
DO $$
DECLARE
    grantee text;
BEGIN
    FOR grantee IN
        SELECT DISTINCT g.grantee FROM information_schema.role_table_grants AS g
        WHERE g.table_schema = 'polymnia' AND g.table_name = 'tokens' AND g.privilege_type = 'INSERT'
            AND g.grantee <> current_user
    LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON web_sessions TO %I', grantee);
    END LOOP;
END
$$;
