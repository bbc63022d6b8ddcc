"""Tests that tell the rules; run them with ./test.sh."""
