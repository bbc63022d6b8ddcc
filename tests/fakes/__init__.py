"""Stand-ins for what tests cannot have, or could not make fail: an engine, a GPU."""
