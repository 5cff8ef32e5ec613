"""Finding things in text: pure functions, no store and no model."""
