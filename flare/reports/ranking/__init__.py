"""A ranking as text, tables, sheets for teams, and paragraphs for a paper."""
