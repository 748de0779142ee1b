"""Map the top-level folders into one import package; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = ("core", "proto", "edge", "region", "allocator", "simulations")

setup(
    package_dir={"apportion": "src/apportion", **{f"apportion.{folder}": folder for folder in FOLDERS}},
    packages=[
        "apportion",
        "apportion.commands",
        "apportion.commands.demonstration",
        *(f"apportion.{folder}" for folder in FOLDERS),
        *(f"apportion.{folder}.{sub}" for folder in FOLDERS for sub in find_packages(folder)),
    ],
)
