-- name: project_named
-- The workspace of a call, by the index on names. Earlier programs allow descriptions that are NULL.
SELECT id, name, coalesce(description, ''), status,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(coalesce(unixepoch(updated_at, 'subsec'), 0) * 1000000 AS INTEGER)
FROM projects WHERE name = ?;

-- name: projects_listed
-- Workspaces by name, those of one status or all.
SELECT id, name, coalesce(description, ''), status,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(coalesce(unixepoch(updated_at, 'subsec'), 0) * 1000000 AS INTEGER)
FROM projects WHERE ?1 IS NULL OR status = ?1 ORDER BY name;

-- name: project_rows
-- Every row as it is, for the check.
SELECT id, name, db_path, status FROM projects ORDER BY rowid;

-- name: project_path
-- Where a workspace's file is. Earlier programs may keep it elsewhere than we do.
SELECT db_path FROM projects WHERE id = ?;

-- name: insert_project
-- Add a workspace whose file is in place.
INSERT INTO projects (id, name, description, db_path, status, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6);

-- name: move_project
-- Record that the file of a workspace was moved.
UPDATE projects SET status = ?2, db_path = ?3, updated_at = ?4 WHERE id = ?1;

-- name: rename_project
-- Rename a workspace. Its file is named after the id, so it stays.
UPDATE projects SET name = ?2, updated_at = ?3 WHERE id = ?1;

-- name: describe_project
-- Change the description of a workspace.
UPDATE projects SET description = ?2, updated_at = ?3 WHERE id = ?1;

-- name: delete_project
-- Remove a workspace whose file is gone.
DELETE FROM projects WHERE id = ?;

-- name: insert_intent
-- Record a change to a workspace's file that is about to begin.
INSERT INTO intents (project, operation) VALUES (?, ?);

-- name: delete_intent
-- Remove the record of a change that was completed or undone.
DELETE FROM intents WHERE project = ?;

-- name: has_intents
-- Whether the table exists: the registry of an earlier program has none.
SELECT 1 FROM sqlite_schema WHERE name = 'intents';

-- name: intents
-- Changes that were begun and not finished.
SELECT project, operation FROM intents ORDER BY project;

-- name: columns_of_projects
-- Whether a registry without our application id is one we can use.
SELECT name FROM pragma_table_info('projects');

-- name: count_tables
-- Whether a registry without our application id is new.
SELECT count(*) FROM sqlite_schema;

-- name: foreign_columns
-- Whether a file has the tables of the program whose projects are taken over.
SELECT t.name || '.' || c.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE t.schema = 'main';

-- name: foreign_entities
-- All of them, the deleted ones too, in order of creation. A deletion time that cannot be read is 1.
SELECT id, name, entity_type,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(coalesce(unixepoch(updated_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(deleted_at IS NULL, 0, coalesce(unixepoch(deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM entities ORDER BY rowid;

-- name: foreign_observations
-- All of them, in order of creation.
SELECT entity_id, content,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(deleted_at IS NULL, 0, coalesce(unixepoch(deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM observations ORDER BY rowid;

-- name: foreign_relations
-- All of them, with the ids of their ends, in order of creation.
SELECT from_entity, to_entity, relation_type,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(deleted_at IS NULL, 0, coalesce(unixepoch(deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM relations ORDER BY rowid;
