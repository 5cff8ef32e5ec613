-- Living rows that the trigram and words indexes do not have yet: those of small writes wait here and go in together.

CREATE TABLE unindexed (
    id INTEGER PRIMARY KEY   -- their row ids in the indexes
);
