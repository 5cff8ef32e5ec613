-- name: token_edits
-- How often the tokens were edited: servers ask this every second, and read the tokens when it has grown.
SELECT number FROM token_edits;

-- name: count_token_edit
-- Count an edit. An editor of the tokens waits here for the one before.
UPDATE token_edits SET number = number + 1 RETURNING number;

-- name: tokens_since
-- The tokens that later edits wrote, oldest first; all of them since -1. Servers follow the table with it.
SELECT id, name, hash, can, workspaces, created_at, expires_at, revoked_at, login, edit FROM tokens WHERE edit > $1::bigint ORDER BY position;

-- name: tokens_named
-- The tokens with these ids, to edit them: each refresh of a client edits one of very many.
SELECT id, name, hash, can, workspaces, created_at, expires_at, revoked_at, login, edit FROM tokens WHERE id = ANY ($1::text[]) ORDER BY position;

-- name: count_tokens
-- How many tokens there are: a server that knows more must forget some.
SELECT count(*) FROM tokens;

-- name: put_token
-- Add a token, or change what can change of it.
INSERT INTO tokens (id, name, hash, can, workspaces, created_at, expires_at, revoked_at, login, edit)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[], $6::bigint, $7::bigint, $8::bigint, $9::text, $10::bigint)
ON CONFLICT (id) DO UPDATE SET can = excluded.can, workspaces = excluded.workspaces, expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at, login = excluded.login, edit = excluded.edit;

-- name: delete_tokens
-- Forget logins that ended long ago.
DELETE FROM tokens WHERE id = ANY ($1::text[]);

-- name: token_used_at
-- When a token was last used, in seconds since 1970.
SELECT used_at FROM tokens WHERE id = $1::text;

-- name: record_token_uses
-- When tokens were last used. Another server may have recorded a later use. In order, so that servers never deadlock.
WITH used AS MATERIALIZED (
    SELECT t.id, u.at FROM tokens AS t JOIN unnest($1::text[], $2::bigint[]) AS u (id, at) ON u.id = t.id
    ORDER BY t.id FOR UPDATE OF t
)
UPDATE tokens AS t SET used_at = greatest(t.used_at, u.at) FROM used AS u WHERE t.id = u.id;
