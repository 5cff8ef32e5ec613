-- name: web_state
-- What the web interface keeps beside a workspace.
SELECT state FROM web_state WHERE workspace_id = $1;

-- name: lock_web_state
-- The same, for a process that changes it: others wait.
INSERT INTO web_state AS w (workspace_id) VALUES ($1)
ON CONFLICT (workspace_id) DO UPDATE SET state = w.state RETURNING state;

-- name: set_web_state
-- Replace it.
UPDATE web_state SET state = $2::text WHERE workspace_id = $1;

-- name: put_web_session
-- Add a login, and delete those that were not used since a time.
WITH idle AS (
    DELETE FROM web_sessions WHERE used_at < $4::bigint
)
INSERT INTO web_sessions (hash, principal, used_at) VALUES ($1::text, $2::text, $3::bigint);

-- name: web_session
-- Who logged in, and when the login was last used, unless it was not used since a time.
SELECT principal, used_at FROM web_sessions WHERE hash = $1::text AND used_at >= $2::bigint;

-- name: touch_web_session
-- Record that a login was used.
UPDATE web_sessions SET used_at = $2::bigint WHERE hash = $1::text;

-- name: delete_web_session
-- End a login.
DELETE FROM web_sessions WHERE hash = $1::text;
