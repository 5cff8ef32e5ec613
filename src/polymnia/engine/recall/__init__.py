"""Find what answers a question or matches a query."""
