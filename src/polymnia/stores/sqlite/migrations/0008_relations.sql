-- All that is read of a relation, in the index by target: those that end at a name are scattered over the table.
-- The last column says nothing in a partial index, but without it SQLite would look into the table for it.

DROP INDEX relations_by_target;
CREATE INDEX relations_by_target ON relations (target, source, type, created_at, deleted_at) WHERE deleted_at IS NULL;
