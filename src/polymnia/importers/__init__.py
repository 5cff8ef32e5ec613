"""Importers, one module per format. All yield entities, relations and notes."""
