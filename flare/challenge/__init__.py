"""What an edition of FLARE asks for, read from a challenge file."""
