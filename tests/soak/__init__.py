"""Mixed load over HTTP for as long as one likes, and how the server's costs grow meanwhile."""
