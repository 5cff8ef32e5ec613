"""Transports: bytes from a client to the protocol and back."""
