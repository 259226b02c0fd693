"""What the package promises as a whole."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import engine_sdk

PACKAGE = Path(__file__).parents[1]
EXAMPLES = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_of_the_readme_are_python(example: str) -> None:
    compile(example, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_every_public_name_is_there_and_documented() -> None:
    for name in engine_sdk.__all__:
        value = getattr(engine_sdk, name)
        assert name in ("ConnectionState", "__version__") or value.__doc__, name


def test_the_version_is_that_of_the_release() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", engine_sdk.__version__)


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "src" / "engine_sdk" / "py.typed").exists()


def test_no_file_is_longer_than_600_lines_and_no_line_than_100_characters() -> None:
    for path in [*PACKAGE.glob("src/**/*.py"), *PACKAGE.glob("tests/*.py")]:
        if path.name == "generated_api.py":
            continue
        lines = path.read_text().splitlines()
        assert len(lines) <= 600, path.name
        assert all(len(line) <= 100 for line in lines), path.name
