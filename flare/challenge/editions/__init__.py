"""The challenge files that come with the program."""
