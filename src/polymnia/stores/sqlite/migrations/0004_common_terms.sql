-- Terms that very many passages have, so that a search for them need not read them all. Counts and lists cover the passages up
-- to the ranked row; a store from before this schema is ranked by its next writes.
CREATE TABLE ranked_row (
    last INTEGER NOT NULL
);
INSERT INTO ranked_row (last) VALUES (0);

CREATE TABLE common_terms (
    term     TEXT    PRIMARY KEY,
    passages INTEGER NOT NULL,      -- ranked passages that have it
    listed   INTEGER NOT NULL,      -- how many of them are listed
    bound    REAL    NOT NULL       -- the BM25 score of the worst one listed, without the term's rarity
) WITHOUT ROWID;

-- The best passages of each common term by BM25: how often they have it, and how many words they have.
CREATE TABLE best_passages (
    term    TEXT    NOT NULL,
    passage INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    length  INTEGER NOT NULL,
    PRIMARY KEY (term, passage)
) WITHOUT ROWID;
CREATE INDEX best_passages_of ON best_passages (passage);
