# SPDX-License-Identifier: Apache-2.0
"""README and the pages in docs/ keep their word: their Python runs as printed."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
import torch

from bridge.caffe2 import workspace

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[tuple[int, str]]:
    """Give (line number, text) of each fenced block of a language."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [(README.count("\n", 0, m.start()) + 2, m[1]) for m in fence.finditer(README)]


PYTHON = blocks("python")
PAGES = sorted((ROOT / "docs").glob("*.md"))
# Without a wheel for some Pythons.
NEEDS = {"models": "datasets", "shell": "safetensors"}
# Not linked from README: the list of the others, and what is made of files that it links to.
INCLUDED = {"changelog", "contributing", "development", "index", "reference"}


@pytest.mark.parametrize(("line", "source"), PYTHON, ids=[f"line {line}" for line, _ in PYTHON])
def test_each_python_block_runs(line: int, source: str) -> None:
    workspace.ResetWorkspace()
    # Blank lines above it, so that a traceback names README's own line.
    code = compile("\n" * (line - 1) + source, str(ROOT / "README.md"), "exec")
    exec(code, {"__name__": "__readme__"})
    workspace.ResetWorkspace()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_as_one_program(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    workspace.ResetWorkspace()
    names = {"__name__": "__page__"}
    with torch.random.fork_rng():  # pages seed it
        for block in fence.finditer(text):
            lines = text.count("\n", 0, block.start()) + 1
            exec(compile("\n" * lines + block[1], str(page), "exec"), names)
    workspace.ResetWorkspace()


def test_readme_links_to_all_pages() -> None:
    assert PAGES
    for page in PAGES:
        assert f"](docs/{page.name})" in README or page.stem in INCLUDED, page.name


def test_its_table_of_peers_stands_on_the_page_on_them() -> None:
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8").splitlines()
    shown = [line for line in README.splitlines() if line.startswith("|") and line.count("|") == 8]
    assert len(shown) == 8
    assert set(shown) <= set(page)


def test_its_versions_equal_the_versions_of_the_package() -> None:
    package = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', package)
    lowest = re.search(r'^torch = \["torch>=([\d.]+)"\]', package, re.MULTILINE)
    assert lowest is not None
    assert f"| Python | {pythons[0]} to {pythons[-1]} |" in README
    assert f"| torch, if you use it | {lowest[1]} or newer |" in README
    assert f'requires-python = ">={pythons[0]}"' in package


def test_the_changelog_is_short_before_the_first_release() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()) <= 60


def test_there_are_python_blocks() -> None:
    assert PYTHON
    first = PYTHON[0][1].strip().splitlines()
    assert len(first) <= 10, "the first block is to fit the first screen"


def test_it_shows_two_commands_of_one_line_each() -> None:
    commands = [text.strip() for _, text in blocks("sh")]
    assert commands == ["make demo", "make test"]
    assert "```bash" not in README
    assert "```shell" not in README


def test_make_has_the_targets_that_the_readme_names() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = README + "".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"`[^`\n]*\bmake ([a-z]+)`", text))
    assert named >= {"test", "bench", "docs"}
    for target in {*named, "demo"}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_the_files_that_it_links_to_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (page.parent / link).exists(), link


def test_the_figures_are_of_the_benchmarks() -> None:
    """Five cells of a row here are the first five of a row there, which a run of them wrote."""
    benchmarks = (ROOT / "tests" / "benchmarks" / "README.md").read_text(encoding="utf-8")
    assert benchmarks.count("<!-- figures -->") == 2
    measured = {tuple(line.split("|")[1:6]) for line in benchmarks.splitlines()}
    section = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    shown = [tuple(line.split("|")[1:6]) for line in section.splitlines() if line[:1] == "|"]
    assert len(shown) > 7
    assert set(shown[2:]) <= measured
