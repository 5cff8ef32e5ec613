-- To-dos, times after which something is not recalled, former names, and who wrote a fact that was merged or moved.
ALTER TABLE cards
    ADD COLUMN aliases text[],              -- former and merged names; NULL: none
    ADD COLUMN due     bigint,              -- when a to-do is due
    ADD COLUMN status  text COLLATE "C",    -- open, done or any other word; NULL: none
    ADD COLUMN expires bigint;              -- not recalled from then on
ALTER TABLE observations
    ADD COLUMN expires bigint,
    ADD COLUMN author  text COLLATE "C";    -- who wrote it first, where `since` does not tell; NULL: it tells

-- Few entities have these, and lists of them must not read all the others.
CREATE INDEX cards_aliased   ON cards (workspace_id, id)     WHERE aliases IS NOT NULL AND until IS NULL;
CREATE INDEX cards_by_status ON cards (workspace_id, status) WHERE status IS NOT NULL AND until IS NULL;
