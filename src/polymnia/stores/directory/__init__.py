"""A data directory: many workspaces, a SQLite file each, and the registry that lists them."""
