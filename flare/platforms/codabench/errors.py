"""The errors of bundles."""

from __future__ import annotations

from flare.common.errors import AboutFile, OrganiserError


class BundleError(AboutFile, OrganiserError):
    """A bundle for Codabench cannot be made or read, or would not work there.

    For organisers: the message says what stands in the way, with the numbers. See
    `docs/organisers/codabench.md`.
    """

    code = "G08"
    remedy = "The documentation's page Codabench says what a bundle needs."
