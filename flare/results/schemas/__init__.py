"""JSON Schemas of the files that the program writes; of a table, that of one row."""
