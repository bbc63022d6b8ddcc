"""What lies in RESULTS/TEAM: each file is written and read in one place here."""
