"""What the stores share whose rows are versions: SQLite and PostgreSQL."""
