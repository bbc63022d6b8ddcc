"""All that a paper takes from results: Methods, tables in LaTeX, figures, files."""
