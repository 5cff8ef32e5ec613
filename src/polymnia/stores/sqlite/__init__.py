"""The default store: one SQLite file per workspace, through apsw."""
