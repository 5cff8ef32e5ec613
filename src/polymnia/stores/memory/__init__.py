"""The graph in memory: the base of the file stores."""
