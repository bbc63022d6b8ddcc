"""Samples GPU memory, processor time and memory while a container runs."""
