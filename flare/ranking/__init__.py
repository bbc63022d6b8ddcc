"""Makes an order out of many teams' results, and says how sure it is."""
