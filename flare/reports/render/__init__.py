"""Renders reports: a module for each output."""
