"""The graph in memory: a store of its own, and the base of the file stores."""
