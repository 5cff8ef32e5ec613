"""Search by meaning: embed passages in the background and compare them."""
