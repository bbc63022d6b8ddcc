"""The pages of a ranking: for everybody, for organisers, and for each team."""
