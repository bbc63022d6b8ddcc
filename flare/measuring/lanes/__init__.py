"""Measures several teams side by side: a lane each, of one computer or of several."""
