"""Runs teams' images on CTs: predictions, running times and GPU memory come out."""
