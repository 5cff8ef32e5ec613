"""Authentication: our own tokens in a file, and tokens of an identity provider."""
