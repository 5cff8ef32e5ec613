"""The Model Context Protocol without I/O: bytes in, at most one reply out, notifications queued."""
