"""Stores that keep the whole graph in one file of a published format."""
