"""Folders of Markdown files: a memory that people read and edit, and that is kept alike with a store."""
