"""What grand-challenge.org does around an evaluation, on this computer."""
