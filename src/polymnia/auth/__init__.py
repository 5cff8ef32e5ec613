"""Authentication: our own tokens, clients that people let in, tokens of identity providers."""
