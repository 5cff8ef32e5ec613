-- usable by: 6
-- People, their logins to the web interface and the clients that they allowed in are beside the tokens, as JSON. It holds only
-- hashes of passwords and secrets. NULL: a token of its own. The hash of the others is empty: earlier programs admit none of them.
ALTER TABLE tokens ADD COLUMN login text;
