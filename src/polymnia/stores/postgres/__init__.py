"""Many workspaces in one PostgreSQL database."""
