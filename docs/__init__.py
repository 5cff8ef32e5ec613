"""The documentation, and the program that makes some of it from code."""
