"""Lets an installed copy have the references of the demonstration set.

They are no part of flare/, as the image has its labels beside evaluate.py. Their folder
may also hold labels that nobody else may see: of those, nothing is taken, because
package-data in pyproject.toml, where all else stands, names the files of the set.
"""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["flare*"]), "flare.demonstration_set"],
    package_dir={"flare.demonstration_set": "ground-truth"},
)
