"""Bundles without wheels, and folders as the site's worker lays them out."""

import io
import subprocess
import sys
import zipfile

from flare.platforms.codabench import packages
from flare.platforms.codabench.bundle import BundleOptions, write_bundle


def write_light_bundle(monkeypatch, file, labels, **options):
    """Write a bundle that has no wheels: its program runs in this Python alone."""
    monkeypatch.setattr(packages, "wheel_files", lambda names, python: ())
    monkeypatch.setattr(packages, "compiled", lambda files: {})  # it takes a second
    write_bundle(BundleOptions(ground_truth=labels, output=file, **options))
    return file


def inner_zip(bundle, name):
    with zipfile.ZipFile(bundle) as archive:
        return zipfile.ZipFile(io.BytesIO(archive.read(name)))


def lay_out(bundle, app):
    """Unpack a bundle as in the site's container; return the submission's folder."""
    for name, place in (
        ("scoring_program.zip", "program"),
        ("reference_data.zip", "input/ref"),
    ):
        inner_zip(bundle, name).extractall(app / place)
    submission = app / "input" / "res"
    submission.mkdir()
    return submission


def run_scoring(app):
    command = [sys.executable, str(app / "program" / "score.py")]
    return subprocess.run(command, cwd=app / "program", capture_output=True, text=True)
