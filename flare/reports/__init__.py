"""All that a person reads about results; computes nothing."""
