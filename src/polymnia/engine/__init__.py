"""The verbs: everything that can be done with a memory, one transaction each, over any store."""
