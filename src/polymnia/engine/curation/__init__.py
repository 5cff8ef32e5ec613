"""Verbs that find what needs attention in a memory. Importing the package imports none of them."""
