"""Coverage-guided fuzzing of everything that reads bytes from elsewhere."""
