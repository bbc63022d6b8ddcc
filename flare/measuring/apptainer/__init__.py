"""Runs teams' images with Apptainer, where there is no Docker."""
