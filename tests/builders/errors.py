"""All classes of errors, of all rooms."""

from importlib import import_module

from flare.common.errors import FlareError
from tests.builders.rooms import PACKAGE


def all_classes(kind=FlareError):
    """Every error class that has a code of its own."""
    for file in PACKAGE.rglob("*errors.py"):
        import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts))
    for child in kind.__subclasses__():
        if "code" in vars(child):
            yield child
        yield from all_classes(child)
