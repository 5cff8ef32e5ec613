"""Formats besides stores: the JSON document and times."""
