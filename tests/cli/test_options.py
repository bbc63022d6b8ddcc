"""Options that several commands have."""

import click

from flare.cli.main import load, sentences


def commands():
    """All commands, and those within a command."""
    for name in sentences():
        command = load(name)
        yield command
        yield from getattr(command, "commands", {}).values()


def test_a_file_that_may_not_be_read_is_no_usage_error(monkeypatch, tmp_path):
    """The command says it, with what to do; capabilities may allow it all the same."""
    monkeypatch.setattr("os.access", lambda *_, **__: False)
    kinds = [p.type for c in commands() for p in c.params]
    paths = [kind for kind in kinds if isinstance(kind, click.Path)]

    file = tmp_path / "page.html"  # a name that all of them take
    file.touch()
    assert len(paths) > 20
    for kind in paths:
        assert str(kind.convert(str(file), None, None)) == str(file)
