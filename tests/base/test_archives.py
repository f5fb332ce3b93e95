"""Archives of others: what is refused before it is unpacked; folders of processes that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mbsfmu.base.archives import UNPACKED_MB, opened_archive, unpack
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file

LINK = zipfile.ZipInfo("resources/link")
LINK.create_system, LINK.external_attr = 3, 0o120777 << 16
UNPACKING = """
import sys, tempfile
from pathlib import Path
tempfile.tempdir = sys.argv[1]
from mbsfmu.base.archives import remove_scratch, scratch_folder
folder = scratch_folder()
(folder / "big").write_text("x")
print(folder, flush=True)
sys.stdin.readline()
remove_scratch(folder)
"""


def archive(path: Path, *entries: tuple[str | zipfile.ZipInfo, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, text in entries:
            made.writestr(name, text)
    return path


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([("../out", "")], "has the entry ../out, which leads out of it"),
        ([("/etc/out", "")], "has the entry /etc/out, which leads out of it"),
        ([("a/../../out", "")], "leads out of it"),
        ([("..\\out", "")], "leads out of it"),
        ([("C:\\out", "")], "leads out of it"),
        ([(LINK, "../../out")], "resources/link, which is a symbolic link"),
        ([("a/b", "one"), ("a//b", "two")], "has two entries a//b"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(
    entries: list[tuple[str | zipfile.ZipInfo, str]], sentence: str, tmp_path: Path
) -> None:
    path = archive(tmp_path / "unit.fmu", *entries)
    with pytest.raises(InputError) as found:
        unpack(path, tmp_path / "unpacked")
    assert sentence in str(found.value)
    assert not any((tmp_path / "unpacked").iterdir())
    assert not (tmp_path / "out").exists()


def test_what_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit may be moved both ways; what the archive says is less than there is is not written."""
    path = archive(tmp_path / "unit.fmu", ("a", "0" * 3_000_000), ("b", "0" * 3_000_000))
    with opened_archive(path) as opened:
        assert len(opened.namelist()) == 2
    monkeypatch.setenv(UNPACKED_MB, "5")
    with pytest.raises(InputError, match=r"unpacks to 6 MB, \d+ times its size; allowed are 5 MB \(MBSFMU_UNPACKED_MB"):
        unpack(path, tmp_path / "unpacked")
    assert not any((tmp_path / "unpacked").iterdir())
    monkeypatch.setenv(UNPACKED_MB, "7")
    unpack(path, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "b").stat().st_size == 3_000_000
    for text in ("much", "-1", "nan"):
        monkeypatch.setenv(UNPACKED_MB, text)
        with pytest.raises(InputError, match=f"MBSFMU_UNPACKED_MB is '{text}'"):
            unpack(path, tmp_path / "unpacked")


def test_a_thousandfold_archive_is_refused_by_default(tmp_path: Path) -> None:
    path = archive(tmp_path / "unit.fmu", *((f"{k}", "0" * 100_000_000) for k in range(6)))
    with pytest.raises(InputError, match=r"unpacks to 600 MB, .* allowed are 500 MB"):
        unpack(path, tmp_path / "unpacked")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_folders_of_killed_processes_go_with_the_next_one(tmp_path: Path) -> None:
    """Those of processes that run stay, whoever began first."""

    def begun() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", UNPACKING, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (killed, left), (lasting, used) = begun(), begun()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert left.is_dir()
    other, _ = begun()
    assert not left.parent.exists()
    assert (used / "big").is_file()
    for process in (lasting, other):
        assert process.communicate("\n")[1] is None
        assert process.returncode == 0
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no umask")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_permissions_that_the_umask_leaves(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        with complete_file(tmp_path / "result.csv") as partial:
            partial.write_text("x")
    finally:
        os.umask(before)
    assert (tmp_path / "result.csv").stat().st_mode & 0o777 == mode
