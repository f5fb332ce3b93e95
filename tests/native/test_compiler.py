"""Finding compilers, refusing what cannot be built, keeping what was built."""

from __future__ import annotations

from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.native import compiler


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_system_compiler", lambda: None)
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(
        mbsfmu.InputError, match=r"install one \(Debian: apt install gcc\) or pip install 'mbsfmu\[cross\]'"
    ):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path / "out", layout="monolithic")
    assert not (tmp_path / "out").exists()
    assert mbsfmu.models.pendulum(1).simulation().run(0.01).time[-1] == 0.01


def test_foreign_platform_needs_the_cross_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(mbsfmu.InputError, match="for win64 the cross-compiler of the extra 'cross' is needed"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", platforms=["win64"])
    with pytest.raises(mbsfmu.InputError, match="there is no platform 'amiga'; there are linux64, win64, darwin64"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", platforms=["amiga"])


def test_what_was_built_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources = {"fmu.c": "int answer(void) { return 42; }\n"}
    first = compiler.compile_library(sources, compiler.host_platform())
    written = first.stat().st_mtime_ns
    assert compiler.compile_library(sources, compiler.host_platform()) == first
    assert first.stat().st_mtime_ns == written
    changed = compiler.compile_library({"fmu.c": sources["fmu.c"].replace("42", "43")}, compiler.host_platform())
    assert changed != first
    assert sorted((tmp_path / "mbsfmu").iterdir()) == sorted([first, changed])
