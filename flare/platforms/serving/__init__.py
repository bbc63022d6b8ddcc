"""External evaluation: submissions are claimed, measured here, and answered."""
