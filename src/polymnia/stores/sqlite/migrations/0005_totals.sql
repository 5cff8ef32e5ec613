-- How many rows live after a change, so that nothing has to count them. It is right if `change` is the last change.
CREATE TABLE totals (
    id        INTEGER PRIMARY KEY CHECK (id = 1),
    change    INTEGER NOT NULL,
    entities  INTEGER NOT NULL,
    facts     INTEGER NOT NULL,
    relations INTEGER NOT NULL,
    notes     INTEGER NOT NULL
);
CREATE INDEX cards_by_type ON cards (type, entity) WHERE until IS NULL;
