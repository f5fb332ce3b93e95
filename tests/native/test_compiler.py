"""Finding compilers, refusing what cannot be built, keeping what was built."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import mbsfmu
from mbsfmu.compiling import compilation, compiler, kept
from mbsfmu.compiling.compilation import CompilerError
from mbsfmu.compiling.compiler import compile_library, host_platform
from mbsfmu.native.traced_code import strings

HALF = "int half(void) { return 21; }\n"


def test_without_a_compiler_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))  # where nothing is that was compiled before
    monkeypatch.setattr(compiler, "_system_compiler", lambda: None)
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(
        mbsfmu.InputError, match=r"install one \(Debian: apt install gcc\) or pip install 'mbsfmu\[cross\]'"
    ):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path / "out", layout="monolithic")
    assert not (tmp_path / "out").exists()
    assert mbsfmu.models.pendulum(1).simulation().run(0.01).time[-1] == 0.01


@pytest.mark.skipif(os.name != "posix", reason="elsewhere zig has a folder of its own")
def test_zig_keeps_what_it_makes_beside_the_sources_where_there_is_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = ["/bin/sh", "-c", 'printf %s "$ZIG_GLOBAL_CACHE_DIR" > said']
    for name in ("XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    for home, expected in (("/home/someone", ""), (None, str(tmp_path))):
        monkeypatch.delenv("HOME") if home is None else monkeypatch.setenv("HOME", home)
        compilation.call_compilers([says], tmp_path)
        assert (tmp_path / "said").read_text() == expected


@pytest.mark.skipif(os.name != "posix", reason="elsewhere no signal ends a program")
def test_a_compiler_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    """As where there is no memory left: its return code is negative, and it says nothing."""
    ended = ["/bin/sh", "-c", "kill -KILL $$"]
    with pytest.raises(CompilerError, match=r"/bin/sh refuses the generated sources: it gives no reason"):
        compilation.call_compilers([ended], tmp_path)


def test_foreign_platform_needs_the_cross_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_zig", lambda: None)
    with pytest.raises(mbsfmu.InputError, match="for win64 the cross-compiler of the extra 'cross' is needed"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", platforms=["win64"])
    with pytest.raises(mbsfmu.InputError, match="there is no platform 'amiga'; there are linux64, win64, darwin64"):
        mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic", platforms=["amiga"])


def test_what_was_built_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    sources = {
        "answer.c": 'int half(void);\n__attribute__((visibility("default"))) int answer(void) { return 2 * half(); }\n',
        "half.c": HALF,
    }
    mains = {"answer.c": "-O1", "half.c": "-O2"}
    first = compiler.compile_library(sources, mains, host_platform())
    assert ctypes.CDLL(str(first)).answer() == 42
    written = first.stat().st_ino
    assert compiler.compile_library(sources, mains, host_platform()) == first
    assert first.stat().st_ino == written
    other = {**sources, "half.c": HALF.replace("21", "22")}
    changed = compiler.compile_library(other, mains, host_platform())
    assert changed != first
    files = list((tmp_path / "kept").iterdir())
    assert sorted(each for each in files if each.suffix == first.suffix) == sorted([first, changed])
    assert len([each for each in files if each.suffix == ".o"]) == 3  # answer.c is compiled once, half.c twice
    assert len(files) == 5


def test_sources_that_are_refused_leave_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    with pytest.raises(RuntimeError, match=r"refuses the generated sources:(.|\n)*wrong\.c"):
        compiler.compile_library(
            {"half.c": HALF, "wrong.c": "int wrong(\n"}, {"half.c": "-O1", "wrong.c": "-O1"}, host_platform()
        )
    assert list(tmp_path.iterdir()) == []


def test_sources_stay_where_they_are_wanted_and_the_library_knows_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    sources, mains = {"half.c": HALF}, {"half.c": "-O1"}
    plain = compiler.compile_library(sources, mains, None, portable=False)
    monkeypatch.setenv(compilation.SOURCES, str(tmp_path / "sources"))
    library = compiler.compile_library(sources, mains, None, portable=False)
    (source,) = (tmp_path / "sources").rglob("half.c")
    assert source.read_text() == HALF
    assert b"debug_line" in library.read_bytes()
    assert b"debug_line" not in plain.read_bytes()
    source.unlink()
    compiler.compile_library(sources, mains, None, portable=False)
    assert source.is_file()


def test_a_folder_for_sources_that_cannot_be_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(compilation.SOURCES, str(tmp_path / "file"))
    with pytest.raises(compilation.CompilerError, match=r"MBSFMU_SOURCES is .*file, where nothing can be written: "):
        compiler.compile_library({"half.c": HALF}, {"half.c": "-O1"}, None, portable=False)


def test_zig_adds_no_checks_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where code is hardly optimized it has them by default, 100 bytes and more for each element that is read."""
    pytest.importorskip("ziglang")
    monkeypatch.delenv("CC", raising=False)
    count = 4000
    lines = "".join(f"    b[{index}] = a[{index}] * b[{index + 1}];\n" for index in range(count))
    text = f'__attribute__((visibility("default"))) void scale(const double *a, double *b) {{\n{lines}}}\n'
    library = compiler.compile_library({"a.c": text}, {"a.c": "-Og"}, "linux64").read_bytes()
    assert len(library) < 50 * count


def test_a_call_of_a_compiler_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "gcc 'x")
    with pytest.raises(mbsfmu.InputError, match="CC is gcc 'x, which is no call of a compiler: no closing quotation"):
        compile_library({"one.c": "int one;"}, {"one.c": "-O0"}, None)


def test_texts_are_no_code_whatever_they_hold(tmp_path: Path) -> None:
    """C99 has trigraphs: `??/` is a backslash, by which a string would not end where it does."""
    texts = [
        "??/",
        'a??/"; int evil; char *b = "',
        "??=??(??)",
        "\\??/",
        "?",
        "100 %s\n\t",
        "ümläut?\x00",
        "*/ }} //??/",
    ]
    program = "\n".join(
        ["#include <stdio.h>", "int main(void) {", f"const char *texts[] = {strings(texts)};"]
        + [f"fwrite(texts[{k}], 1, {len(each.encode())}, stdout);" for k, each in enumerate(texts)]
        + ["return 0; }"]
    )
    (tmp_path / "program.c").write_text(program)
    command = [shutil.which("gcc") or "cc", "-std=c99", "-trigraphs", "program.c", "-o", "program"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert subprocess.run(tmp_path / "program", check=True, capture_output=True).stdout == "".join(texts).encode()
