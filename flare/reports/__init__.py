"""All that a person reads about results; computes nothing but what cases draw."""
