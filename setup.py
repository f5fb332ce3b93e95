"""The packages of the wheel; all else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

# Examples are a folder of the repository, for readers, and of the package, for `mbsfmu models` and `mbsfmu new`.
setup(
    packages=[*find_namespace_packages(include=["mbsfmu*", "hydraulics*"]), "mbsfmu.examples"],
    package_dir={"mbsfmu.examples": "examples"},
)
