"""Bring memories in from elsewhere, and copy them between stores."""
