"""The web interface at /ui of the HTTP server: pages over the engine's verbs, rendered on the server."""
