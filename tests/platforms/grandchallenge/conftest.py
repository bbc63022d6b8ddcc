"""What tests of the client have in common."""

import pytest

from flare.platforms.grandchallenge import client


@pytest.fixture
def pauses(monkeypatch):
    """Seconds that clients wait between tries; chance makes none longer or shorter."""
    monkeypatch.setattr(client.random, "random", lambda: 0.5)
    return []
