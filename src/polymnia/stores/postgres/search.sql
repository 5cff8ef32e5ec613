-- name: texts_containing
-- The texts of cards and observations that contain a folded text, by entity. The expressions are those of the trigram
-- indexes, here and below.
SELECT entity, name, type FROM cards
WHERE workspace_id = $1 AND until IS NULL AND folded(name || E'\n' || type) LIKE folded($2::text)
UNION ALL
SELECT entity, text, '' FROM observations
WHERE workspace_id = $1 AND until IS NULL AND folded(text) LIKE folded($2::text);

-- name: texts_with_few_letters
-- The same for a text without a trigram, for which an index would be read from end to end, here and below.
SELECT entity, name, type FROM cards
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(name || E'\n' || type), folded($2::text)) > 0
UNION ALL
SELECT entity, text, '' FROM observations
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(text), folded($2::text)) > 0;

-- name: notes_containing
-- The texts of vault notes that contain a folded text.
SELECT id, key, text FROM notes
WHERE workspace_id = $1 AND until IS NULL AND folded(key || E'\n' || text) LIKE folded($2::text);

-- name: notes_with_few_letters
-- The same for a text without a trigram.
SELECT id, key, text FROM notes
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(key || E'\n' || text), folded($2::text)) > 0;

-- name: passages_containing
-- The texts of passages that contain a folded text, oldest first.
SELECT id, name, type FROM cards
WHERE workspace_id = $1 AND until IS NULL AND folded(name || E'\n' || type) LIKE folded($2::text)
UNION ALL
SELECT id, text, '' FROM observations
WHERE workspace_id = $1 AND until IS NULL AND folded(text) LIKE folded($2::text)
UNION ALL
SELECT id, key, text FROM notes
WHERE workspace_id = $1 AND until IS NULL AND folded(key || E'\n' || text) LIKE folded($2::text)
ORDER BY 1;

-- name: passages_with_few_letters
-- The same for a text without a trigram.
SELECT id, name, type FROM cards
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(name || E'\n' || type), folded($2::text)) > 0
UNION ALL
SELECT id, text, '' FROM observations
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(text), folded($2::text)) > 0
UNION ALL
SELECT id, key, text FROM notes
WHERE workspace_id = $1 AND until IS NULL AND strpos(folded(key || E'\n' || text), folded($2::text)) > 0
ORDER BY 1;

-- name: newest_passages
-- Some passages, the newest first, where a query is too short to tell any apart.
SELECT passage FROM words WHERE workspace_id = $1 ORDER BY passage DESC LIMIT $2::bigint;

-- name: match_words
-- The passages of some kinds that have some or all of some stems, best first, with their scores.
WITH found AS MATERIALIZED (
    SELECT * FROM word_scores($1::bigint, $2::tsquery, $3::text[], $4::tsquery[], $5::text[], $6::float8[], NULL)
)
SELECT f.passage, c.name, 'entity' AS kind, f.score
FROM found AS f JOIN cards AS c ON c.workspace_id = $1 AND c.id = f.passage
WHERE 'entity' = ANY ($7::text[])
UNION ALL
SELECT f.passage, c.name, 'observation', f.score
FROM found AS f JOIN observations AS o ON o.workspace_id = $1 AND o.id = f.passage
JOIN cards AS c ON c.workspace_id = $1 AND c.entity = o.entity AND c.until IS NULL
WHERE 'observation' = ANY ($7::text[])
UNION ALL
SELECT f.passage, n.key, 'note', f.score
FROM found AS f JOIN notes AS n ON n.workspace_id = $1 AND n.id = f.passage
WHERE 'note' = ANY ($7::text[])
ORDER BY 4 DESC, 1 LIMIT $8::bigint;

-- name: best_words
-- The passages that have some or all of some stems, best first.
SELECT passage FROM word_scores($1::bigint, $2::tsquery, $3::text[], $4::tsquery[], $5::text[], $6::float8[], NULL)
ORDER BY score DESC, passage LIMIT $7::bigint;

-- name: best_words_within
-- The same among the passages of some names, some types, a period and all of some tags; NULL allows any. Only the passages of
-- the names are scored: a common word has many others.
SELECT f.passage
FROM word_scores($1::bigint, $2::tsquery, $3::text[], $4::tsquery[], $5::text[], $6::float8[], CASE WHEN $8::text[] IS NOT NULL THEN ARRAY(
    SELECT c.id FROM cards AS c
    WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($8::text[]) AS n))
        AND c.name = ANY ($8::text[]) AND c.until IS NULL
    UNION ALL
    SELECT o.id FROM cards AS c JOIN observations AS o ON o.workspace_id = $1 AND o.entity = c.entity AND o.until IS NULL
    WHERE c.workspace_id = $1 AND text_key(c.name) = ANY (ARRAY(SELECT text_key(n) FROM unnest($8::text[]) AS n))
        AND c.name = ANY ($8::text[]) AND c.until IS NULL
    UNION ALL
    SELECT n.id FROM notes AS n
    WHERE n.workspace_id = $1 AND text_key(n.key) = ANY (ARRAY(SELECT text_key(k) FROM unnest($8::text[]) AS k))
        AND n.key = ANY ($8::text[]) AND n.until IS NULL
) END) AS f
LEFT JOIN observations AS o ON o.workspace_id = $1 AND o.id = f.passage
LEFT JOIN notes AS n ON n.workspace_id = $1 AND n.id = f.passage
LEFT JOIN cards AS own ON own.workspace_id = $1 AND own.id = f.passage
LEFT JOIN cards AS c ON c.workspace_id = $1 AND c.entity = coalesce(o.entity, own.entity) AND c.until IS NULL
WHERE ($9::text[] IS NULL OR coalesce(c.type, 'note') = ANY ($9::text[]))
    AND ($10::bigint IS NULL OR coalesce(o.valid_at, o.created_at, c.created_at, n.updated_at) >= $10::bigint)
    AND ($11::bigint IS NULL OR coalesce(o.valid_at, o.created_at, c.created_at, n.updated_at) < $11::bigint)
    AND ($12::text[] IS NULL OR coalesce(c.tags, n.tags, '{}') @> $12::text[])
ORDER BY f.score DESC, f.passage LIMIT $7::bigint;

-- name: word_counts
-- The totals of the index, and how many passages have each of the lexemes that were ever indexed.
SELECT p.passages, p.words, t.term, (
    SELECT count(*) FROM words AS w WHERE w.workspace_id = $1 AND w.terms @@ q.query
)
FROM unnest($2::text[], $3::tsquery[]) AS q (lexeme, query)
JOIN terms AS t ON t.workspace_id = $1 AND t.term = q.lexeme COLLATE "C"
JOIN workspaces AS p ON p.workspace_id = $1;

-- name: phrase_counts
-- The totals of the index, and how many passages match each of the queries, in order.
SELECT p.passages, p.words, (
    SELECT count(*) FROM words AS w WHERE w.workspace_id = $1 AND w.terms @@ q.query
)
FROM unnest($2::tsquery[]) WITH ORDINALITY AS q (query, number)
JOIN workspaces AS p ON p.workspace_id = $1
ORDER BY q.number;

-- name: find_words
-- The passages that match a query, and how many words they have.
SELECT passage, length FROM words WHERE workspace_id = $1 AND terms @@ $2::tsquery;

-- name: terms_between
-- The terms from one to before another, up to a limit, without those whose passages are all gone.
SELECT t.term FROM terms AS t
WHERE t.workspace_id = $1 AND t.term >= $2::text COLLATE "C" AND t.term < $3::text COLLATE "C"
    AND EXISTS (
        SELECT 1 FROM words AS w
        WHERE w.workspace_id = $1 AND w.terms @@ quote_literal(t.term)::tsquery
    )
ORDER BY t.term LIMIT $4::bigint;

-- name: delete_unused_terms
-- Delete the terms that no living passage has: they are words of texts that were purged.
DELETE FROM terms WHERE workspace_id = $1 AND term NOT IN (
    SELECT unnest(tsvector_to_array(w.terms)) FROM words AS w WHERE w.workspace_id = $1
);

-- name: passage_heads
-- The passages with these ids and of some kinds, with the names of their entities or their keys.
SELECT c.id, c.name, 'entity' AS kind FROM cards AS c
WHERE c.workspace_id = $1 AND c.id = ANY ($2::bigint[]) AND c.until IS NULL AND 'entity' = ANY ($3::text[])
UNION ALL
SELECT o.id, c.name, 'observation' FROM observations AS o
JOIN cards AS c ON c.workspace_id = $1 AND c.entity = o.entity AND c.until IS NULL
WHERE o.workspace_id = $1 AND o.id = ANY ($2::bigint[]) AND o.until IS NULL AND 'observation' = ANY ($3::text[])
UNION ALL
SELECT n.id, n.key, 'note' FROM notes AS n
WHERE n.workspace_id = $1 AND n.id = ANY ($2::bigint[]) AND n.until IS NULL AND 'note' = ANY ($3::text[]);

-- name: passages_by_id
-- The living passages with these ids: cards, observations and notes.
SELECT c.id, c.name, c.type, 0::bigint, coalesce(c.summary, ''), c.created_at, 0::bigint, c.tags, NULL::text, c.expires
FROM cards AS c WHERE c.workspace_id = $1 AND c.id = ANY ($2::bigint[]) AND c.until IS NULL
UNION ALL
SELECT o.id, c.name, c.type, o.ordinal, o.text, o.created_at, coalesce(o.valid_at, 0), c.tags, o.source,
    least(o.expires, c.expires)
FROM observations AS o JOIN cards AS c ON c.workspace_id = $1 AND c.entity = o.entity AND c.until IS NULL
WHERE o.workspace_id = $1 AND o.id = ANY ($2::bigint[]) AND o.until IS NULL
UNION ALL
SELECT n.id, n.key, 'note', -1, n.text, n.updated_at, 0, n.tags, NULL, NULL
FROM notes AS n WHERE n.workspace_id = $1 AND n.id = ANY ($2::bigint[]) AND n.until IS NULL;

-- name: observations_between
-- The newest observations of a period.
SELECT id FROM observations
WHERE workspace_id = $1 AND until IS NULL
    AND coalesce(valid_at, created_at) >= $2::bigint AND coalesce(valid_at, created_at) < $3::bigint
ORDER BY coalesce(valid_at, created_at) DESC, id DESC LIMIT $4::bigint;

-- name: neighbour_ids
-- For observations up to two before and one after in the same conversation. Ids are in order of writing. Without a source, a
-- few observations before and after ($3) are considered, if the same client wrote them and their times are at most $4 apart.
SELECT id, before[1], before[2], after[1] FROM (
SELECT o.id,
    ARRAY(SELECT n.id FROM observations AS n
        WHERE n.workspace_id = $1 AND text_key(n.source) = text_key(o.source) AND n.source = o.source
            AND n.source IS NOT NULL AND n.until IS NULL AND n.id < o.id
        ORDER BY n.id DESC LIMIT 2),
    ARRAY(SELECT n.id FROM observations AS n
        WHERE n.workspace_id = $1 AND text_key(n.source) = text_key(o.source) AND n.source = o.source
            AND n.source IS NOT NULL AND n.until IS NULL AND n.id > o.id
        ORDER BY n.id LIMIT 1)
FROM observations AS o WHERE o.workspace_id = $1 AND o.id = ANY ($2::bigint[]) AND o.source IS NOT NULL
UNION ALL
SELECT o.id,
    ARRAY(SELECT near.id FROM (
            SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n
            WHERE n.workspace_id = $1 AND n.until IS NULL AND n.source IS NULL AND n.id < o.id
            ORDER BY n.workspace_id DESC, n.id DESC LIMIT $3::bigint
        ) AS near JOIN changes AS made ON made.workspace_id = $1 AND made.id = near.since
        WHERE made.actor = own.actor AND made.server = own.server
            AND abs(near.at - coalesce(o.valid_at, o.created_at)) <= $4::bigint
        ORDER BY near.id DESC LIMIT 2),
    ARRAY(SELECT near.id FROM (
            SELECT n.id, n.since, coalesce(n.valid_at, n.created_at) AS at FROM observations AS n
            WHERE n.workspace_id = $1 AND n.until IS NULL AND n.source IS NULL AND n.id > o.id
            ORDER BY n.workspace_id, n.id LIMIT $3::bigint
        ) AS near JOIN changes AS made ON made.workspace_id = $1 AND made.id = near.since
        WHERE made.actor = own.actor AND made.server = own.server
            AND abs(near.at - coalesce(o.valid_at, o.created_at)) <= $4::bigint
        ORDER BY near.id LIMIT 1)
FROM observations AS o JOIN changes AS own ON own.workspace_id = $1 AND own.id = o.since
WHERE o.workspace_id = $1 AND o.id = ANY ($2::bigint[]) AND o.source IS NULL
) AS near (id, before, after);

-- name: observation_counts
-- How many living observations the entities with these names have.
SELECT c.name, (
    SELECT count(*) FROM observations AS o
    WHERE o.workspace_id = $1 AND o.entity = c.entity AND o.until IS NULL
)
FROM unnest($2::text[]) AS wanted (name)
JOIN cards AS c ON c.workspace_id = $1 AND text_key(c.name) = text_key(wanted.name) AND c.until IS NULL;
