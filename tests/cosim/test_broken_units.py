"""Files that are damaged or incomplete: one sentence each, nothing left in the temporary folder, the same folder."""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import fmpy
import pytest
from foreign_fmus import compiler

from mbsfmu import InputError, SimulationError, cosimulate

LIBRARY = f"binaries/{fmpy.platform}/dahlquist{fmpy.sharedLibraryExtension}"


@pytest.fixture
def parts(foreign: Callable[[str], Path]) -> dict[str, bytes]:
    with zipfile.ZipFile(foreign("dahlquist")) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: dict[str, bytes], folder: Path) -> Path:
    path = folder / "broken.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def compiled(folder: Path, code: str, *options: str, name: str = "made") -> bytes:
    source, library = folder / f"{name}.c", folder / f"lib{name}{fmpy.sharedLibraryExtension}"
    source.write_text(code)
    subprocess.run([str(compiler()), "-shared", "-fPIC", str(source), "-o", str(library), *options], check=True)
    return library.read_bytes()


def check(path: Path, sentence: str, monkeypatch: pytest.MonkeyPatch, folder: Path, **options: list[str]) -> None:
    unpacked = folder / "unpacked"
    unpacked.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(unpacked))
    here = Path.cwd()
    with pytest.raises((InputError, SimulationError), match=sentence) as caught:
        cosimulate(path, step=0.1, stop=1.0, **options)
    assert "\n" not in str(caught.value)
    assert str(unpacked) not in str(caught.value)
    assert list(unpacked.iterdir()) == []
    assert Path.cwd() == here


def test_library_that_is_called_otherwise(
    parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = parts.pop(LIBRARY)
    path = packed({**parts, LIBRARY.replace("dahlquist", "other"): library}, tmp_path)
    check(path, r"has no library dahlquist\.\w+ for \w+; binaries/\w+ has other\.", monkeypatch, tmp_path)


def test_library_that_is_none(parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed({**parts, LIBRARY: b"no library"}, tmp_path)
    check(path, r"broken\.fmu: the library dahlquist cannot be used: ", monkeypatch, tmp_path)


def test_missing_function(parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = compiled(tmp_path, 'const char *fmi2GetVersion(void) { return "2.0"; }')
    path = packed({**parts, LIBRARY: library}, tmp_path)
    check(path, r"the library dahlquist cannot be used: .*fmi2", monkeypatch, tmp_path)


def test_missing_dependency(parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tmp_path, "int helper(void) { return 1; }", name="helper")
    uses = "int helper(void); int use(void) { return helper(); }"
    library = compiled(tmp_path, uses, f"-L{tmp_path}", "-lhelper")
    (tmp_path / f"libhelper{fmpy.sharedLibraryExtension}").unlink()
    path = packed({**parts, LIBRARY: library}, tmp_path)
    check(path, r"the library dahlquist cannot be used: .*libhelper", monkeypatch, tmp_path)


def test_damaged_archive(parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed({**parts, "resources/table.txt": b"one two three"}, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"one two three", b"one two thref"))
    check(path, r"broken\.fmu cannot be unpacked: Bad CRC-32 for file 'resources/table\.txt'", monkeypatch, tmp_path)


@pytest.mark.parametrize("name", ["../outside.txt", "resources/../../outside.txt"])
def test_entry_that_leads_out(
    parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = packed({**parts, name: b"text"}, tmp_path)
    check(path, r"has the entry .*outside\.txt, which leads out of it", monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("raise(SIGSEGV)", "broken at t = 0 s: its process was ended by SIGSEGV while it was loaded"),
        ("exit(0)", "broken at t = 0 s: its process ended by itself with the status 0 while it was loaded"),
    ],
)
def test_libraries_that_take_their_process_down(
    parts: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, sentence: str
) -> None:
    begin = "#include <signal.h>\n#include <stdlib.h>\n__attribute__((constructor)) static void begin(void)"
    path = packed({**parts, LIBRARY: compiled(tmp_path, f"{begin} {{ {code}; }}")}, tmp_path)
    check(path, sentence, monkeypatch, tmp_path, isolate=["broken"])


def test_no_unit_at_all() -> None:
    with pytest.raises(InputError, match="no FMU is given"):
        cosimulate([])
