-- name: project_named
-- One project, at every call: by the index on names.
SELECT id, name, description, status,
    CAST(unixepoch(created_at, 'subsec') * 1000000 AS INTEGER),
    CAST(unixepoch(updated_at, 'subsec') * 1000000 AS INTEGER)
FROM projects WHERE name = ?;

-- name: projects_listed
-- Projects by name, those of one status or all.
SELECT id, name, description, status,
    CAST(unixepoch(created_at, 'subsec') * 1000000 AS INTEGER),
    CAST(unixepoch(updated_at, 'subsec') * 1000000 AS INTEGER)
FROM projects WHERE ?1 IS NULL OR status = ?1 ORDER BY name;

-- name: project_path
-- Where a project's file is; earlier programs may have put it elsewhere than we would.
SELECT db_path FROM projects WHERE id = ?;

-- name: insert_project
-- A new project: its file is there already.
INSERT INTO projects (id, name, description, db_path, status, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, 'active', ?5, ?5);

-- name: move_project
-- Its file has been moved.
UPDATE projects SET status = ?2, db_path = ?3, updated_at = ?4 WHERE id = ?1;

-- name: rename_project
-- Only the name: the file is named after the id.
UPDATE projects SET name = ?2, updated_at = ?3 WHERE id = ?1;

-- name: describe_project
-- What people read about it.
UPDATE projects SET description = ?2, updated_at = ?3 WHERE id = ?1;

-- name: delete_project
-- Its file is gone.
DELETE FROM projects WHERE id = ?;

-- name: insert_intent
-- What is about to happen to a project's file.
INSERT INTO intents (project, operation) VALUES (?, ?);

-- name: delete_intent
-- It has happened, or was taken back.
DELETE FROM intents WHERE project = ?;

-- name: intents
-- What was begun and not finished.
SELECT project, operation FROM intents ORDER BY project;

-- name: columns_of_projects
-- Whether a registry without our mark is one we can take.
SELECT name FROM pragma_table_info('projects');

-- name: count_tables
-- Whether a registry without our mark is new.
SELECT count(*) FROM sqlite_schema;

-- name: record_migration
-- When a step of the schema was taken.
INSERT INTO migrations (number, applied_at) VALUES (?, datetime('now'));

-- name: foreign_columns
-- Whether a file has the tables of the program whose projects are taken over.
SELECT t.name || '.' || c.name FROM pragma_table_list AS t, pragma_table_info(t.name) AS c WHERE t.schema = 'main';

-- name: foreign_entities
-- All of them, the deleted too, in the order they were created.
SELECT id, name, entity_type,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(coalesce(unixepoch(updated_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(deleted_at IS NULL, 0, coalesce(unixepoch(deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM entities ORDER BY rowid;

-- name: foreign_observations
-- All of them, in the order they were created.
SELECT entity_id, content,
    CAST(coalesce(unixepoch(created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(deleted_at IS NULL, 0, coalesce(unixepoch(deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM observations ORDER BY rowid;

-- name: foreign_relations
-- All of them, with the names of their ends.
SELECT source.name, target.name, r.relation_type,
    CAST(coalesce(unixepoch(r.created_at, 'subsec'), 0) * 1000000 AS INTEGER),
    CAST(iif(r.deleted_at IS NULL, 0, coalesce(unixepoch(r.deleted_at, 'subsec') * 1000000, 1)) AS INTEGER)
FROM relations AS r
JOIN entities AS source ON source.id = r.from_entity
JOIN entities AS target ON target.id = r.to_entity
ORDER BY r.rowid;
