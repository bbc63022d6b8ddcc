"""What platforms do around an evaluation; each platform is a folder."""
