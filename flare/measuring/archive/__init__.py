"""Reads a team's image archive and says what would go wrong, without loading it."""
