"""File primitives that stores, tokens and the command line share."""
