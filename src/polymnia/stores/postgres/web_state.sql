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
