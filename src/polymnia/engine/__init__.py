"""The verbs: everything that can be done with a memory. Each is one transaction, on any store."""
