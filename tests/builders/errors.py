"""All classes of errors."""

from flare.common import errors


def all_classes(kind=errors.FlareError):
    """Every error class that has a code of its own."""
    for child in kind.__subclasses__():
        if "code" in vars(child):
            yield child
        yield from all_classes(child)
