"""Importers: one module for each format of another program, all of which yield entities, relations and notes."""
