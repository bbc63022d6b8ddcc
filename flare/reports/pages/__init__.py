"""Makes pages for a browser: one file each, which needs nothing else."""
