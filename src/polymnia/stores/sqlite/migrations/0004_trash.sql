-- What was deleted, by when and by id: to list it, to bring it back, and to take it away for good after a while.

CREATE INDEX entities_deleted ON entities (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX entities_deleted_by_uid ON entities (uid) WHERE deleted_at IS NOT NULL;
CREATE INDEX observations_deleted ON observations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX relations_deleted ON relations (deleted_at) WHERE deleted_at IS NOT NULL;
