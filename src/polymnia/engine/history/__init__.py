"""Who changed what, taking it back, and the trash."""
