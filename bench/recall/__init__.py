"""How much of what answers a question is found, beside simpler rankings, and how quickly."""
