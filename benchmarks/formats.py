"""Writes the label maps of a folder again, in another format, with SimpleITK."""

from __future__ import annotations

import argparse
from pathlib import Path

import SimpleITK as sitk


def convert(source: Path, target: Path, suffix: str, *, is_packed: bool) -> None:
    """Write all files of both kinds in another format."""
    for kind in ("reference", "predictions"):
        (target / kind).mkdir(parents=True)
        for file in sorted((source / kind).iterdir()):
            image = sitk.ReadImage(str(file))
            name = file.name.removesuffix(".nii.gz") + suffix
            sitk.WriteImage(image, str(target / kind / name), is_packed)


if __name__ == "__main__":
    sitk.ProcessObject.SetGlobalWarningDisplay(False)  # of names it cannot write
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("suffix")
    parser.add_argument("--packed", action="store_true")
    arguments = parser.parse_args()
    convert(
        arguments.source,
        arguments.target,
        arguments.suffix,
        is_packed=arguments.packed,
    )
