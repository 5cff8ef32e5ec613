"""A log of changes in one file: its store, its records, and the forms of older programs."""
