-- Which facts a client read, if the server keeps an audit of reads: no text, and the entity by its row id.
CREATE TABLE reads (
    at      INTEGER NOT NULL,
    actor   TEXT    NOT NULL,
    tool    TEXT    NOT NULL,
    entity  INTEGER NOT NULL,
    ordinal INTEGER NOT NULL
);
CREATE INDEX reads_by_time ON reads (at);
