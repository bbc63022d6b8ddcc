"""A file for each command, which is loaded when the command is called.

A new file is a new command at once: its function ``command`` gets the dataclass of its
options, and ``PLACE`` says where the help has it.
"""
