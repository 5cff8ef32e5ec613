-- Rows are versions: `since` is the change that created a row, `until` the change that ended it (NULL: it lives).
-- Every row id of cards, observations, relations and notes of a workspace comes from one counter, in commit order, so the
-- ids of cards, observations and notes are one space of passage ids. A passage's text never changes under its id.
-- Times are microseconds since 1970, UTC. Texts that are compared or sorted have the collation "C": by code point.
--
-- Every key and every B-tree index starts with workspace_id, so the tables can be distributed by it (docs/scaling.md). Only
-- `migrations` and `catalogue` belong to no workspace; they are small and can be copied to every node.

CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;
CREATE SCHEMA IF NOT EXISTS polymnia;

-- What indexes hold in place of a text: an index entry cannot be longer than a third of a page, and a name can.
CREATE FUNCTION text_key(text) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN md5($1)::uuid;

CREATE TABLE migrations (
    number     integer     PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The workspaces by name.
CREATE TABLE catalogue (
    workspace_id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    uid          text   NOT NULL,                     -- what clients know the workspace by
    name         text   COLLATE "C" NOT NULL,
    folded       text   COLLATE "C" NOT NULL UNIQUE,  -- the name without differences of case
    description  text   NOT NULL,
    status       text   NOT NULL CHECK (status IN ('active', 'archived')),
    generation   bigint NOT NULL DEFAULT 1,           -- grows whenever the workspace is archived or restored
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL
);

-- One row per workspace, and the lock of its writers: whoever changes a workspace locks this row first, so changes and row
-- ids are given out in commit order. Half of each page is free, because every change updates the row.
CREATE TABLE workspaces (
    workspace_id bigint  PRIMARY KEY,
    is_active    boolean NOT NULL DEFAULT true,
    last_change  bigint  NOT NULL DEFAULT 0,
    last_row     bigint  NOT NULL DEFAULT 0,
    last_at      bigint  NOT NULL DEFAULT 0,          -- the time of the last change
    passages     bigint  NOT NULL DEFAULT 0,          -- indexed passages and
    words        bigint  NOT NULL DEFAULT 0           -- their words: the totals that BM25 needs
) WITH (fillfactor = 50);

-- Who wants to be notified of changes, and until when. A notification costs writers a third of their throughput.
CREATE TABLE followers (
    workspace_id bigint      PRIMARY KEY,
    expires_at   timestamptz NOT NULL
) WITH (fillfactor = 50);

-- One row per write. The rows it created have the ids after its predecessor's last_row, up to its own.
CREATE TABLE changes (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,           -- 1, 2, 3 … in commit order
    at           bigint NOT NULL,           -- later than that of every change before
    actor        text   NOT NULL,           -- the client and the token it used
    server       text   NOT NULL,           -- the process that made the change
    operation    text   NOT NULL,
    last_row     bigint NOT NULL,
    key          uuid   NOT NULL,           -- random: tells whether a commit whose answer was lost took place
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX changes_by_time ON changes (workspace_id, at);

-- Points of the history that have a name, such as that of the last consolidation report.
CREATE TABLE marks (
    workspace_id bigint NOT NULL,
    name         text   COLLATE "C" NOT NULL,
    change       bigint NOT NULL,           -- the last change before it
    at           bigint NOT NULL,
    PRIMARY KEY (workspace_id, name)
);

-- One row per purge: rows that ended at or before this change are gone.
CREATE TABLE purges (
    workspace_id bigint NOT NULL,
    change       bigint NOT NULL,
    PRIMARY KEY (workspace_id, change)
);

-- The identity of an entity, and the counters that are not versioned.
CREATE TABLE entities (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,           -- the row id of its first card: entities in order of creation
    uid          text   COLLATE "C" NOT NULL,
    next_ordinal bigint NOT NULL,           -- kept because ordinals are never reused, not even after a purge
    updated_at   bigint NOT NULL,
    touched      bigint NOT NULL,           -- the last change to it or to its observations
    PRIMARY KEY (workspace_id, id)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX entities_by_uid ON entities (workspace_id, text_key(uid));
CREATE INDEX entities_by_time       ON entities (workspace_id, updated_at, id);

-- When an entity counted as updated by a change, where the rows of that change do not tell: it came with a time of its own
-- (from a restore or an import), it was only touched, or a purge removed the rows. Other changes update at their own time.
CREATE TABLE updates (
    workspace_id bigint NOT NULL,
    entity       bigint NOT NULL,
    change       bigint NOT NULL,
    at           bigint NOT NULL,
    PRIMARY KEY (workspace_id, entity, change)
);

-- What is known of the entity itself.
CREATE TABLE cards (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    entity       bigint NOT NULL,
    name         text   COLLATE "C" NOT NULL,
    type         text   COLLATE "C" NOT NULL,
    summary      text,
    summary_at   bigint,
    tags         text[],                    -- NULL: none
    created_at   bigint NOT NULL,           -- when the entity was created
    since        bigint NOT NULL,
    until        bigint,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, entity) REFERENCES entities (workspace_id, id)
);
CREATE UNIQUE INDEX cards_living    ON cards (workspace_id, text_key(name)) WHERE until IS NULL;
CREATE INDEX cards_past             ON cards (workspace_id, text_key(name)) WHERE until IS NOT NULL;
CREATE INDEX cards_of               ON cards (workspace_id, entity);
CREATE UNIQUE INDEX cards_living_of ON cards (workspace_id, entity)         WHERE until IS NULL;
CREATE INDEX cards_ended            ON cards (workspace_id, until)          WHERE until IS NOT NULL;

CREATE TABLE observations (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    entity       bigint NOT NULL,
    ordinal      bigint NOT NULL,
    text         text   COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    valid_at     bigint,                    -- NULL: when it was created
    source       text   COLLATE "C",        -- the conversation or document it comes from; NULL: unknown
    since        bigint NOT NULL,
    until        bigint,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, entity) REFERENCES entities (workspace_id, id)
);
CREATE UNIQUE INDEX observations_living ON observations (workspace_id, entity, ordinal) WHERE until IS NULL;
CREATE INDEX observations_of            ON observations (workspace_id, entity, ordinal);
CREATE INDEX observations_ended         ON observations (workspace_id, until)           WHERE until IS NOT NULL;
-- Observations by the time they tell of.
CREATE INDEX observations_by_time       ON observations (workspace_id, coalesce(valid_at, created_at), id) WHERE until IS NULL;
-- Observations of one source in the order they were written.
CREATE INDEX observations_by_source     ON observations (workspace_id, text_key(source), id) WHERE source IS NOT NULL AND until IS NULL;

-- Relations name their ends as text: an end may be a name that no entity has yet.
CREATE TABLE relations (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    source       text   COLLATE "C" NOT NULL,
    target       text   COLLATE "C" NOT NULL,
    type         text   COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    since        bigint NOT NULL,
    until        bigint,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX relations_living ON relations (workspace_id, text_key(source), text_key(target), text_key(type)) WHERE until IS NULL;
CREATE INDEX relations_by_target      ON relations (workspace_id, text_key(target)) WHERE until IS NULL;
CREATE INDEX relations_past           ON relations (workspace_id, text_key(source)) WHERE until IS NOT NULL;
CREATE INDEX relations_past_by_target ON relations (workspace_id, text_key(target)) WHERE until IS NOT NULL;
CREATE INDEX relations_ended          ON relations (workspace_id, until)            WHERE until IS NOT NULL;

-- The vault's notes.
CREATE TABLE notes (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    key          text   COLLATE "C" NOT NULL,
    text         text   COLLATE "C" NOT NULL,
    tags         text[],                    -- NULL: none
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    since        bigint NOT NULL,
    until        bigint,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX notes_living ON notes (workspace_id, text_key(key))   WHERE until IS NULL;
CREATE INDEX notes_past          ON notes (workspace_id, text_key(key))   WHERE until IS NOT NULL;
CREATE INDEX notes_ended         ON notes (workspace_id, until)           WHERE until IS NOT NULL;
CREATE INDEX notes_by_key        ON notes (workspace_id, left(key, 100))  WHERE until IS NULL;
CREATE INDEX notes_by_text       ON notes (workspace_id, text_key(text))  WHERE until IS NULL;
CREATE INDEX notes_by_time       ON notes (workspace_id, created_at, id)  WHERE until IS NULL;

-- The tags of living vault notes.
CREATE TABLE note_tags (
    workspace_id bigint NOT NULL,
    tag          text   COLLATE "C" NOT NULL,
    note         bigint NOT NULL,
    FOREIGN KEY (workspace_id, note) REFERENCES notes (workspace_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX note_tags_by_tag ON note_tags (workspace_id, text_key(tag), note);
CREATE INDEX note_tags_of            ON note_tags (workspace_id, note);

-- Notes of sessions are private to the session and vanish with it: no versions, no index, no history.
CREATE TABLE session_notes (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    owner        text   COLLATE "C" NOT NULL, -- the principal whose session it is
    session      text   COLLATE "C" NOT NULL,
    key          text   COLLATE "C" NOT NULL,
    text         text   NOT NULL,
    tags         text[],
    embedding    bytea,                     -- little-endian float32; NULL: none
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX session_notes_by_key ON session_notes (workspace_id, text_key(owner), text_key(session), text_key(key));

-- Which conversation uses which session, on which running server.
CREATE TABLE session_members (
    workspace_id bigint NOT NULL,
    member       text   COLLATE "C" NOT NULL,
    owner        text   COLLATE "C" NOT NULL,
    session      text   COLLATE "C" NOT NULL,
    server       text   COLLATE "C" NOT NULL,
    used_at      bigint NOT NULL
);
CREATE UNIQUE INDEX session_members_by_member
    ON session_members (workspace_id, text_key(member), text_key(owner), text_key(session));

-- Stemmed words of living passages, with the labels A name, B labels (type and tags), C content and D parts, as in SQLite's
-- index. Partitions keep the index of one workspace's words small; on Citus the shards do the same.
CREATE TABLE words (
    workspace_id bigint   NOT NULL,
    passage      bigint   NOT NULL,
    length       integer  NOT NULL,         -- how many words, repeats included
    terms        tsvector NOT NULL,
    PRIMARY KEY (workspace_id, passage)
) PARTITION BY HASH (workspace_id);
-- Words stay in the row, uncompressed, as long as they fit into a page: they are read once for each word of a question.
ALTER TABLE words ALTER COLUMN terms SET STORAGE EXTERNAL;
DO $$
BEGIN
    FOR part IN 0..31 LOOP
        EXECUTE format(
            'CREATE TABLE words_%1$s PARTITION OF words FOR VALUES WITH (MODULUS 32, REMAINDER %1$s)
            WITH (toast_tuple_target = 8160)', part);
    END LOOP;
END
$$;
-- A search reads all entries that wait to be sorted into the index, so there are never many, here and below.
CREATE INDEX words_terms ON words USING gin (terms) WITH (gin_pending_list_limit = 256);

-- The distinct words that were ever indexed, to find those that are spelled alike.
CREATE TABLE terms (
    workspace_id bigint NOT NULL,
    term         text   COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, term)
);

-- How often a stem occurs in a passage, up to eight times, from the rank with equal weights: that of n occurrences is a
-- multiple of 1 + 1/4 + ... + 1/n². NULL for more. Unpacking a tsvector takes 20 times as long.
CREATE FUNCTION occurrences(rank float4) RETURNS integer LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE rank
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1'::tsvector, 'x'::tsquery) THEN 1
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2'::tsvector, 'x'::tsquery) THEN 2
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3'::tsvector, 'x'::tsquery) THEN 3
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3,4'::tsvector, 'x'::tsquery) THEN 4
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3,4,5'::tsvector, 'x'::tsquery) THEN 5
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3,4,5,6'::tsvector, 'x'::tsquery) THEN 6
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3,4,5,6,7'::tsvector, 'x'::tsquery) THEN 7
    WHEN ts_rank('{1, 1, 1, 1}'::float4[], 'x:1,2,3,4,5,6,7,8'::tsvector, 'x'::tsquery) THEN 8
END;

-- BM25 as FTS5 computes it, for the passages that a query finds. Each stem of the query comes with a query for it alone, by
-- which its passages are counted, and with the labels of the columns where it counts. The weights are those of A, B, C, D.
-- Only passages in `among` are scored, unless it is NULL.
CREATE FUNCTION word_scores(
    workspace bigint, query tsquery, lexemes text[], queries tsquery[], labels text[], weights float8[], among bigint[]
) RETURNS TABLE (passage bigint, score float8) LANGUAGE sql STABLE
-- Few, so that hits are looked up: for the default of 1,000, a search reads all observations of the workspace.
ROWS 10
-- Planning takes longer than most searches, and there is only one good plan.
SET plan_cache_mode = force_generic_plan
BEGIN ATOMIC
    WITH wanted AS MATERIALIZED (
        SELECT q.number, q.lexeme, q.query, p.words::float8 / p.passages AS average,
            CASE WHEN p.passages > 2 * n.passages
                THEN ln((p.passages - n.passages + 0.5::float8) / (n.passages + 0.5::float8)) ELSE 1e-6 END AS rarity,
            CASE WHEN strpos(q.label, 'A') > 0 THEN word_scores.weights[1] END AS a,
            CASE WHEN strpos(q.label, 'B') > 0 THEN word_scores.weights[2] END AS b,
            CASE WHEN strpos(q.label, 'C') > 0 THEN word_scores.weights[3] END AS c,
            CASE WHEN strpos(q.label, 'D') > 0 THEN word_scores.weights[4] END AS d
        FROM unnest(word_scores.lexemes, word_scores.queries, word_scores.labels)
            WITH ORDINALITY AS q (lexeme, query, label, number)
        JOIN workspaces AS p ON p.workspace_id = word_scores.workspace AND p.passages > 0
        CROSS JOIN LATERAL (
            SELECT count(*) AS passages FROM words AS w
            WHERE w.workspace_id = word_scores.workspace AND w.terms @@ q.query
        ) AS n
    ), ranks AS (
        SELECT w.passage, w.length, w.terms, q.*,
            ts_rank('{1, 1, 1, 1}'::float4[], w.terms, q.query) AS everywhere,
            ts_rank('{0, 1, 0, 0}'::float4[], w.terms, q.query) AS in_content
        FROM words AS w CROSS JOIN wanted AS q
        WHERE w.workspace_id = word_scores.workspace AND w.terms @@ word_scores.query
            AND (word_scores.among IS NULL OR w.passage = ANY (word_scores.among))
        OFFSET 0 -- so that ranks are computed once
    ), hits AS (
        SELECT r.passage, r.length, r.number, r.rarity, r.average, coalesce(
            CASE WHEN r.everywhere = r.in_content OR (r.a = r.b AND r.b = r.c AND r.c = r.d)
                THEN occurrences(r.everywhere) * r.c END,
            (
                SELECT sum(CASE x WHEN 'A' THEN r.a WHEN 'B' THEN r.b WHEN 'C' THEN r.c ELSE r.d END)
                FROM unnest(r.terms) AS t, unnest(t.weights) AS x WHERE t.lexeme = r.lexeme
            )
        ) AS found
        FROM ranks AS r WHERE r.everywhere > 0
        OFFSET 0
    )
    SELECT h.passage, sum(
        h.rarity * ((h.found * 2.2) / (h.found + 1.2 * (0.25 + 0.75 * h.length / h.average))) ORDER BY h.number
    )
    FROM hits AS h WHERE h.found IS NOT NULL GROUP BY h.passage;
END;

-- A text without differences of case and composition, as `fold` in search/text.py makes it.
CREATE FUNCTION folded(text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN normalize(casefold(normalize($1, NFC) COLLATE pg_unicode_fast), NFC) COLLATE "C";

-- Substrings of the folded texts, by workspace: letters that are rare in one may be common in all. No second copy of a
-- text: matches are verified against the rows.
CREATE INDEX cards_trigrams ON cards USING gin (workspace_id, folded(name || E'\n' || type) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;
CREATE INDEX observations_trigrams ON observations USING gin (workspace_id, folded(text) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;
CREATE INDEX notes_trigrams ON notes USING gin (workspace_id, folded(key || E'\n' || text) gin_trgm_ops)
    WITH (gin_pending_list_limit = 256) WHERE until IS NULL;

CREATE TABLE models (
    workspace_id bigint  NOT NULL,
    id           bigint  NOT NULL,
    identity     text    COLLATE "C" NOT NULL,  -- model, dimension and prompts: vectors of others cannot be compared
    url          text    NOT NULL,              -- how to load it again; 'client': the clients bring their own vectors
    dimension    integer NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX models_by_identity ON models (workspace_id, text_key(identity));

-- How passages become the texts that are embedded. A template that no perspective has any more loses its vectors.
CREATE TABLE templates (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    template     text   COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX templates_by_text ON templates (workspace_id, text_key(template));

CREATE TABLE perspectives (
    workspace_id bigint NOT NULL,
    id           bigint NOT NULL,
    name         text   COLLATE "C" NOT NULL,
    template     bigint NOT NULL,
    query        text   NOT NULL,           -- how a question becomes the text that is embedded
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, template) REFERENCES templates (workspace_id, id)
);
CREATE UNIQUE INDEX perspectives_by_name ON perspectives (workspace_id, text_key(name));

CREATE TABLE vectors (
    workspace_id bigint NOT NULL,
    model        bigint NOT NULL,
    template     bigint NOT NULL,
    passage      bigint NOT NULL,
    vector       halfvec NOT NULL,          -- of length one; no dimension here, because models differ
    raw          bytea,                     -- a client's little-endian float32 as it came
    PRIMARY KEY (workspace_id, model, template, passage),
    FOREIGN KEY (workspace_id, model) REFERENCES models (workspace_id, id),
    FOREIGN KEY (workspace_id, template) REFERENCES templates (workspace_id, id)
);
-- Compared vectors are in the row itself, as long as they fit into a page.
ALTER TABLE vectors ALTER COLUMN vector SET STORAGE MAIN;
CREATE INDEX vectors_of ON vectors (workspace_id, passage);

-- The nearest vectors of living passages. EXECUTE plans each call for its values: only then can PostgreSQL use the index
-- that a workspace with many vectors has for itself (vector_index.py), and without sorting it always does. More vectors
-- than asked for are chosen by halves of floats and compared as floats.
CREATE FUNCTION nearest_vectors(workspace bigint, model bigint, template bigint, question vector, k integer)
RETURNS TABLE (passage bigint, cosine float8) LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    chosen CONSTANT integer := 2 * k + 20;
BEGIN
    PERFORM set_config('hnsw.ef_search', least(greatest(chosen, 200), 1000)::text, true);
    RETURN QUERY EXECUTE format(
        'WITH chosen AS MATERIALIZED (
            SELECT v.passage, v.vector FROM vectors AS v
            WHERE v.workspace_id = %1$s AND v.model = %2$s AND v.template = %3$s
            ORDER BY v.vector::halfvec(%4$s) <=> $1::halfvec(%4$s) LIMIT %5$s
        )
        SELECT c.passage, 1 - (c.vector::vector <=> $1) FROM chosen AS c
        WHERE EXISTS (SELECT 1 FROM words AS w WHERE w.workspace_id = %1$s AND w.passage = c.passage)
        ORDER BY 2 DESC, 1 LIMIT %6$s',
        workspace, model, template, vector_dims(question), chosen, k
    ) USING question;
END
$$;

-- Background work that one server does at a time.
CREATE TABLE leases (
    workspace_id bigint NOT NULL,
    name         text   COLLATE "C" NOT NULL,
    server       text   NOT NULL,
    expires_at   bigint NOT NULL,
    PRIMARY KEY (workspace_id, name)
);
