"""Case pages, which show organisers why one case scores what it does."""
