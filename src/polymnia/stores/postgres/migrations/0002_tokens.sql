-- Tokens of remote clients, shared by all servers of the database. Only hashes are stored. They belong to no workspace: on
-- several nodes every node has a copy.
CREATE TABLE tokens (
    id         text   COLLATE "C" PRIMARY KEY,
    position   bigint NOT NULL GENERATED ALWAYS AS IDENTITY,  -- in order of creation
    name       text   NOT NULL,
    hash       text   NOT NULL,                   -- SHA-256 of the whole token, in hexadecimal
    can        text   NOT NULL CHECK (can IN ('read', 'write', 'admin')),
    workspaces text[],                            -- NULL: all
    created_at bigint NOT NULL,                   -- times are seconds since 1970
    expires_at bigint,
    revoked_at bigint,
    used_at    bigint                             -- NULL: never
) WITH (fillfactor = 80);

-- One row: how often the tokens were edited. It is also the lock of those who edit them.
CREATE TABLE token_edits (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    number  bigint  NOT NULL
);
INSERT INTO token_edits (number) VALUES (0);
