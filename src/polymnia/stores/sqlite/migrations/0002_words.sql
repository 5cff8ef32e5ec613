-- The words index, and when the thing an observation tells was said or true.

ALTER TABLE observations ADD COLUMN valid_at INTEGER NOT NULL DEFAULT 0;   -- 0: when it was created

-- Conversations in the order they were written, and observations by time.
CREATE INDEX observations_by_time ON observations (valid_at, created_at) WHERE deleted_at IS NULL;

-- Stemmed words of living rows: rowid as in observations, ordinal 0 is the entity itself and has its name and type.
-- `parts` has what is derived from the others (the parts of getUserName, pairs of Chinese characters), apart from
-- them so that phrases are found where they stand. It holds positions but no text.
CREATE VIRTUAL TABLE words USING fts5 (
    name, entity_type, content, parts,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('usermerge', 2);
CREATE VIRTUAL TABLE word_terms USING fts5vocab (words, row);

INSERT INTO words (rowid, name, entity_type, content, parts)
SELECT id << 24 AS row_id, name, type, NULL, derived_words(name || ' ' || type) FROM entities WHERE deleted_at IS NULL
UNION ALL
SELECT id, NULL, NULL, content, derived_words(content) FROM observations WHERE deleted_at IS NULL
ORDER BY row_id;
