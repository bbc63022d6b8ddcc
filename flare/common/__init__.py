"""What any program could use; it knows no challenge, no case and no team."""
