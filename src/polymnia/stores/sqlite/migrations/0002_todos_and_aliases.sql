-- To-dos, times after which something is not recalled, former names, and who wrote a fact that was merged or moved.
ALTER TABLE cards ADD COLUMN aliases TEXT;          -- former and merged names, a JSON array; NULL: none
ALTER TABLE cards ADD COLUMN due INTEGER;           -- when a to-do is due
ALTER TABLE cards ADD COLUMN status TEXT;           -- open, done or any other word; NULL: none
ALTER TABLE cards ADD COLUMN expires INTEGER;       -- not recalled from then on
ALTER TABLE observations ADD COLUMN expires INTEGER;
ALTER TABLE observations ADD COLUMN author TEXT;    -- who wrote it first, where `since` does not tell; NULL: it tells

-- Few entities have these, and lists of them must not read all the others.
CREATE INDEX cards_aliased   ON cards (id)     WHERE aliases IS NOT NULL AND until IS NULL;
CREATE INDEX cards_by_status ON cards (status) WHERE status IS NOT NULL AND until IS NULL;
