"""How much a search finds: sets of questions, memories filled with them, and the measures."""
