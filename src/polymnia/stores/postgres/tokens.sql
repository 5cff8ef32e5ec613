-- name: token_edits
-- How often the tokens were edited: servers ask this every second, and read the tokens when it has grown.
SELECT number FROM token_edits;

-- name: count_token_edit
-- Count an edit. An editor of the tokens waits here for the one before.
UPDATE token_edits SET number = number + 1;

-- name: tokens_all
-- Every token, oldest first.
SELECT id, name, hash, can, workspaces, created_at, expires_at, revoked_at, login FROM tokens ORDER BY position;

-- name: put_token
-- Add a token, or change what can change of it.
INSERT INTO tokens (id, name, hash, can, workspaces, created_at, expires_at, revoked_at, login)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text[], $6::bigint, $7::bigint, $8::bigint, $9::text)
ON CONFLICT (id) DO UPDATE SET can = excluded.can, workspaces = excluded.workspaces, expires_at = excluded.expires_at,
    revoked_at = excluded.revoked_at, login = excluded.login;

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
