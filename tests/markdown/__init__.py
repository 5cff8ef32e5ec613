"""Tests of Markdown folders and of keeping them alike with a memory."""
