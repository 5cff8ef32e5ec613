"""Ways in: bytes from somewhere to the protocol and back."""
