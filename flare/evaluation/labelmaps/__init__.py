"""Reads label maps, verified to the last byte, and compares their grids."""
