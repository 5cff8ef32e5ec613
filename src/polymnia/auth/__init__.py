"""Who may come in, and as whom: tokens of our own, tokens of an identity provider."""
