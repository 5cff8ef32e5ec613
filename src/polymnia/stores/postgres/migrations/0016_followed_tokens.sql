-- usable by: 6
-- A server reads the tokens that changed, not all of them, when one of very many clients refreshes. `edit` is the number of the
-- edit that wrote a row. Earlier programs do not write it: servers read all tokens when the number of an edit is missing.
ALTER TABLE tokens ADD COLUMN edit bigint NOT NULL DEFAULT 0;
CREATE INDEX tokens_edit ON tokens (edit);
