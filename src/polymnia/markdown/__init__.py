"""Folders of Markdown files that people read and edit, synchronized with a store."""
