"""A file for each command, which is loaded when the command is called."""
