"""Lets pytest find the tests sooner."""

import gc

import pytest


class QuickCollection:
    """A plugin, as hooks of a conftest.py beside the tests do not reach flare/."""

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path):
        """Look for examples only in files that have some: to look takes a while."""
        found = yield
        if b">>>" in file_path.read_bytes():
            return found
        return [each for each in found if type(each) is pytest.Module]  # has tests

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self):
        """Look for no rubbish in what is collected: it stays to the end."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.enable()
            gc.collect()
            gc.freeze()
