"""The workspaces of a store, and which one a client means."""
