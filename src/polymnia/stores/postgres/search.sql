-- fragment: passage_keys
-- The row keys of these passages.
ARRAY(SELECT row_key($1, unnest($2::bigint[])))

-- fragment: card_of_observation
-- The living card of an observation's entity.
CROSS JOIN LATERAL (SELECT * FROM cards AS c WHERE c.entity_key = o.entity_key AND c.until IS NULL LIMIT 1) AS c

-- name: texts_containing
-- The texts of cards and observations that contain a folded text, by entity.
SELECT entity, first, second FROM matching_texts($1::bigint, $2::text, ARRAY['card', 'observation']);

-- name: texts_with_few_letters
-- The same for a text without a trigram, for which an index would be read from end to end, here and below.
SELECT entity, name, type FROM cards
WHERE entity_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(name || E'\n' || type)), $2::text) > 0
UNION ALL
SELECT entity, text, '' FROM observations
WHERE entity_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(text)), $2::text) > 0;

-- name: notes_containing
-- The texts of vault notes that contain a folded text.
SELECT id, first, second FROM matching_texts($1::bigint, $2::text, ARRAY['note']);

-- name: notes_with_few_letters
-- The same for a text without a trigram.
SELECT id, key, text FROM notes
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(key || E'\n' || text)), $2::text) > 0;

-- name: passages_containing
-- The texts of passages that contain a folded text, oldest first.
SELECT id, first, second FROM matching_texts($1::bigint, $2::text, ARRAY['card', 'observation', 'note'])
ORDER BY 1;

-- name: passages_with_few_letters
-- The same for a text without a trigram.
SELECT id, name, type FROM cards
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(name || E'\n' || type)), $2::text) > 0
UNION ALL
SELECT id, text, '' FROM observations
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(text)), $2::text) > 0
UNION ALL
SELECT id, key, text FROM notes
WHERE row_key BETWEEN row_key($1, 0) AND last_key($1) AND until IS NULL
    AND strpos(coalesce(folded, lower(key || E'\n' || text)), $2::text) > 0
ORDER BY 1;

-- name: newest_passages
-- Some passages, the newest first, where a query is too short to select any.
SELECT passage FROM words WHERE workspace_id = $1 ORDER BY passage DESC LIMIT $2::bigint;

-- name: match_words
-- The passages of some kinds that have some or all of some stems, best first, with their scores.
WITH found AS MATERIALIZED (
    SELECT * FROM word_scores($1::bigint, $2::tsquery, $3::text[], $4::tsquery[], $5::text[], $6::float8[], NULL)
)
SELECT f.passage, h.name, h.kind, f.score FROM found AS f CROSS JOIN LATERAL (
    SELECT c.name, 'entity' AS kind FROM cards AS c
    WHERE c.row_key = row_key($1, f.passage) AND 'entity' = ANY ($7::text[])
    UNION ALL
    SELECT (SELECT c.name FROM cards AS c WHERE c.entity_key = o.entity_key AND c.until IS NULL), 'fact'
    FROM observations AS o WHERE o.row_key = row_key($1, f.passage) AND 'fact' = ANY ($7::text[])
    UNION ALL
    SELECT n.key, 'note' FROM notes AS n
    WHERE n.row_key = row_key($1, f.passage) AND 'note' = ANY ($7::text[])
    LIMIT 1
) AS h
ORDER BY 4 DESC, 1 LIMIT $8::bigint;

-- fragment: counted_terms
-- The totals of the index, and how many passages have each of the lexemes that were ever indexed. The number of a common one
-- ($4 passages or more) is estimated from the newest passages: the index would have to read all of its entries.
WITH totals AS MATERIALIZED (
    SELECT passages, words FROM workspaces WHERE workspace_id = $1
), sample AS MATERIALIZED (
    SELECT s.terms FROM totals CROSS JOIN LATERAL (
        SELECT w.terms FROM words AS w WHERE w.workspace_id = $1 ORDER BY w.passage DESC
        LIMIT CASE WHEN totals.passages >= $4::bigint THEN 500 ELSE 0 END
    ) AS s
), counted AS MATERIALIZED (
    SELECT q.lexeme, CASE
        WHEN s.having * totals.passages >= $4::bigint * 500 THEN s.having * totals.passages / 500
        ELSE count_words($1::bigint, q.query)
    END AS having
    FROM unnest($2::text[], $3::tsquery[]) AS q (lexeme, query)
    -- LIMIT, because a join could read every term of the workspace and compare them.
    CROSS JOIN LATERAL (
        SELECT FROM terms AS t WHERE t.workspace_id = $1 AND t.term = q.lexeme COLLATE "C" LIMIT 1
    ) AS known
    CROSS JOIN LATERAL (SELECT count(*) AS having FROM sample WHERE sample.terms @@ q.query) AS s
    CROSS JOIN totals
)

-- name: word_counts
-- The totals of the index, and how many passages have each of some lexemes.
{counted_terms}
SELECT totals.passages, totals.words, counted.lexeme, counted.having FROM totals CROSS JOIN counted;

-- fragment: weighted_terms
-- The same terms with their rarity as FTS5 computes it, if a passage has one of them, and the passages to score.
{counted_terms}, weighted AS MATERIALIZED (
    SELECT array_agg(q.lexeme ORDER BY q.place) AS lexemes, array_agg(q.query ORDER BY q.place) AS queries,
        max(totals.words)::float8 / max(totals.passages) AS average,
        array_agg(CASE
            WHEN totals.passages > 2 * coalesce(c.having, 0)
            THEN ln((totals.passages - coalesce(c.having, 0) + 0.5)::float8 / (coalesce(c.having, 0) + 0.5)::float8)
            ELSE 1e-6
        END ORDER BY q.place) AS rarities
    FROM unnest($2::text[], $3::tsquery[]) WITH ORDINALITY AS q (lexeme, query, place)
    CROSS JOIN totals LEFT JOIN counted AS c ON c.lexeme = q.lexeme
    HAVING max(c.having) > 0
)

-- fragment: rows_of_best
-- The living passages that were chosen: cards, observations and notes.
-- `until IS NULL` would fit the partial indexes, and without statistics PostgreSQL reads one of them whole, with the rows of all
-- workspaces, rather than look up a few keys.
SELECT c.id, c.name, c.type, 0::bigint, coalesce(c.summary, ''), c.created_at, 0::bigint, c.tags, NULL::text, c.expires
FROM cards AS c WHERE c.row_key = ANY (ARRAY(SELECT row_key($1, passage) FROM best)) AND coalesce(c.until, 0) = 0
UNION ALL
SELECT o.id, c.name, c.type, o.ordinal, o.text, o.created_at, coalesce(o.valid_at, 0), c.tags, o.source,
    least(o.expires, c.expires)
FROM observations AS o {card_of_observation}
WHERE o.row_key = ANY (ARRAY(SELECT row_key($1, passage) FROM best)) AND coalesce(o.until, 0) = 0
UNION ALL
SELECT n.id, n.key, 'note', -1, n.text, n.updated_at, 0, n.tags, NULL, NULL
FROM notes AS n WHERE n.row_key = ANY (ARRAY(SELECT row_key($1, passage) FROM best)) AND coalesce(n.until, 0) = 0

-- name: best_names
-- The names of entities with some words in their names or labels, best first. A word that very many passages have finds none.
{counted_terms}, rare AS MATERIALIZED (
    SELECT array_agg(q.lexeme ORDER BY q.place) AS lexemes, array_agg(q.labelled::tsquery ORDER BY q.place) AS queries,
        array_agg($6::text) AS labels, string_agg(q.labelled, ' | ' ORDER BY q.place)::tsquery AS query
    FROM unnest($2::text[], $5::text[]) WITH ORDINALITY AS q (lexeme, labelled, place)
    JOIN counted AS c ON c.lexeme = q.lexeme
    WHERE c.having < $4::bigint
)
SELECT c.name FROM rare CROSS JOIN LATERAL word_scores(
    $1::bigint, rare.query, rare.lexemes, rare.queries, rare.labels, '{1, 1, 1, 1}'::float8[], NULL) AS f
CROSS JOIN LATERAL (SELECT * FROM cards AS c WHERE c.row_key = row_key($1, f.passage) LIMIT 1) AS c
WHERE rare.query IS NOT NULL
ORDER BY f.score DESC, f.passage LIMIT $7::bigint;

-- name: best_words
-- The passages that have some or all of some stems, and score best.
{weighted_terms}, best AS MATERIALIZED (
    SELECT f.passage FROM weighted AS w CROSS JOIN LATERAL score_words(
        $1::bigint, $5::tsquery, w.lexemes, w.queries, w.rarities, w.average, NULL, NULL) AS f
    ORDER BY f.score DESC, f.passage LIMIT $6::bigint
)
{rows_of_best};

-- name: best_newest_words
-- The same among the newest passages that have all of some stems, where every one of these is very common.
{weighted_terms}, best AS MATERIALIZED (
    SELECT f.passage FROM weighted AS w CROSS JOIN LATERAL score_words(
        $1::bigint, $5::tsquery, w.lexemes, w.queries, w.rarities, w.average,
        ARRAY(SELECT newest_words($1::bigint, $5::tsquery, $7::bigint, $6::bigint)), NULL) AS f
    ORDER BY f.score DESC, f.passage LIMIT $6::bigint
)
{rows_of_best};

-- name: best_words_within
-- The same among the passages of some names, some types, a period and all of some tags; NULL allows any. Only the passages of
-- the names are scored: a common word has many others.
{weighted_terms}, best AS MATERIALIZED (
    SELECT f.passage FROM weighted AS w CROSS JOIN LATERAL score_words(
        $1::bigint, $5::tsquery, w.lexemes, w.queries, w.rarities, w.average,
        CASE WHEN $7::text[] IS NOT NULL THEN ARRAY(
            SELECT p.id FROM (SELECT DISTINCT unnest($7::text[]) AS name) AS w
            CROSS JOIN LATERAL (
                SELECT c.id FROM cards AS c
                WHERE c.name_key = name_key($1, w.name) AND c.name = w.name AND c.until IS NULL
                UNION ALL
                SELECT o.id FROM observations AS o WHERE o.until IS NULL AND o.entity_key = (
                    SELECT c.entity_key FROM cards AS c
                    WHERE c.name_key = name_key($1, w.name) AND c.name = w.name AND c.until IS NULL)
                UNION ALL
                SELECT n.id FROM notes AS n
                WHERE n.name_key = name_key($1, w.name) AND n.key = w.name AND n.until IS NULL
                OFFSET 0
            ) AS p
        ) END, NULL) AS f
    CROSS JOIN LATERAL (
        SELECT c.type, c.created_at AS at, c.tags FROM cards AS c WHERE c.row_key = row_key($1, f.passage)
        UNION ALL
        SELECT c.type, coalesce(o.valid_at, o.created_at), c.tags
        FROM observations AS o CROSS JOIN LATERAL (
            SELECT * FROM cards AS c WHERE c.entity_key = o.entity_key AND c.until IS NULL LIMIT 1
        ) AS c
        WHERE o.row_key = row_key($1, f.passage)
        UNION ALL
        SELECT 'note', n.updated_at, n.tags FROM notes AS n WHERE n.row_key = row_key($1, f.passage)
        LIMIT 1
    ) AS p
    WHERE ($8::text[] IS NULL OR p.type = ANY ($8::text[]))
        AND ($9::bigint IS NULL OR p.at >= $9::bigint) AND ($10::bigint IS NULL OR p.at < $10::bigint)
        AND ($11::text[] IS NULL OR coalesce(p.tags, '{}') @> $11::text[])
    ORDER BY f.score DESC, f.passage LIMIT $6::bigint
)
{rows_of_best};

-- name: find_words
-- The passages that match a query, and how many words they have.
SELECT passage, length FROM matching_words($1::bigint, $2::tsquery);

-- name: matching_vectors
-- The places of those of some vectors that match a query.
SELECT v.place FROM unnest($2::text[]) WITH ORDINALITY AS v (vector, place)
WHERE v.vector::tsvector @@ $3::tsquery AND $1::bigint IS NOT NULL;

-- name: terms_between
-- The terms from one to before another, up to a limit, without those whose passages are all gone.
SELECT t.term FROM terms AS t
WHERE t.workspace_id = $1 AND t.term >= $2::text COLLATE "C" AND t.term < $3::text COLLATE "C"
    AND EXISTS (SELECT 1 FROM matching_words($1::bigint, quote_literal(t.term)::tsquery))
ORDER BY t.term LIMIT $4::bigint;

-- name: delete_unused_terms
-- Delete the terms that no living passage has: they are words of texts that were purged. EXCEPT sorts or hashes both sides;
-- NOT IN compares each with each as soon as the terms outgrow work_mem.
DELETE FROM terms WHERE workspace_id = $1 AND term IN (
    SELECT t.term FROM terms AS t WHERE t.workspace_id = $1
    EXCEPT
    SELECT unnest(tsvector_to_array(w.terms)) FROM words AS w WHERE w.workspace_id = $1
);

-- name: passage_heads
-- The passages with these ids and of some kinds, with the names of their entities or their keys.
SELECT c.id, c.name, 'entity' AS kind FROM cards AS c
WHERE c.row_key = ANY ({passage_keys}) AND coalesce(c.until, 0) = 0 AND 'entity' = ANY ($3::text[])
UNION ALL
SELECT o.id, c.name, 'fact' FROM observations AS o {card_of_observation}
WHERE o.row_key = ANY ({passage_keys}) AND coalesce(o.until, 0) = 0 AND 'fact' = ANY ($3::text[])
UNION ALL
SELECT n.id, n.key, 'note' FROM notes AS n
WHERE n.row_key = ANY ({passage_keys}) AND coalesce(n.until, 0) = 0 AND 'note' = ANY ($3::text[]);

-- name: passages_by_id
-- The living passages with these ids.
WITH best AS MATERIALIZED (SELECT unnest($2::bigint[]) AS passage)
{rows_of_best};

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
        WHERE n.source_key = o.source_key AND n.source = o.source
            AND n.source IS NOT NULL AND n.until IS NULL AND n.id < o.id
        ORDER BY n.id DESC LIMIT 2),
    ARRAY(SELECT n.id FROM observations AS n
        WHERE n.source_key = o.source_key AND n.source = o.source
            AND n.source IS NOT NULL AND n.until IS NULL AND n.id > o.id
        ORDER BY n.id LIMIT 1)
FROM observations AS o WHERE o.row_key = ANY ({passage_keys}) AND o.source IS NOT NULL
UNION ALL
SELECT * FROM neighbours_in_time($1::bigint, $2::bigint[], $3::bigint, $4::bigint)
) AS near (id, before, after);

-- name: observation_counts
-- How many living observations the entities with these names have.
SELECT c.name, (
    SELECT count(*) FROM observations AS o WHERE o.entity_key = c.entity_key AND o.until IS NULL
)
FROM unnest($2::text[]) AS wanted (name)
CROSS JOIN LATERAL (
    SELECT * FROM cards AS c
    WHERE c.name_key = name_key($1, wanted.name) AND c.name = wanted.name AND c.until IS NULL LIMIT 1
) AS c;
