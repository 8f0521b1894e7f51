"""What pyproject.toml requires of others.

As a program, it prints the lowest versions that parsimon and its optional parts declare, of those
that have a wheel for this Python: `make test-lowest` installs exactly these.
"""

import json
import subprocess
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest brings it

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

REQUIRED = [Requirement(line) for line in PROJECT["dependencies"]]
# What the package uses if it is there; the other extras are for those who work on parsimon.
OPTIONAL = [
    Requirement(line)
    for extra in ("plot", "progress", "arrow", "dask", "pandas", "polars", "river", "onnx")
    for line in PROJECT["optional-dependencies"][extra]
]


def lowest(requirement):
    """Return the lowest version that a requirement allows and that this Python can install."""
    command = ["index", "versions", "--json", "--only-binary=:all:", requirement.name]
    answer = subprocess.run(
        [sys.executable, "-m", "pip", *command], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    return min(requirement.specifier.filter(json.loads(answer)["versions"]), key=Version)


if __name__ == "__main__":
    for declared in REQUIRED + OPTIONAL:
        print(f"{declared.name}=={lowest(declared)}")
