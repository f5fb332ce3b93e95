"""Files that are damaged or made to hurt: each reader gives a result or one sentence, and soon."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mbsfmu
from mbsfmu import CoupledModel, InputError, Mechanism, Trajectory
from mbsfmu.compiling.compiler import host_platform
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.runs.load_fmus import source_overview
from mbsfmu.fmu.validation import validate
from mbsfmu.io.checkpoints import read_saved, write_saved
from mbsfmu.io.formats import suffixes
from mbsfmu.io.signals import read_signals
from mbsfmu.modelling.data import DataError
from mbsfmu.urdf.importing import mechanism_from_urdf

URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 0.5" rpy="0 0 0"/><mass value="2"/>
    <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.01"/></inertial>
    <visual><geometry><cylinder radius="0.05" length="1"/></geometry></visual></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
</robot>
"""
SEEDS = 40
Reader = Callable[[Path], Any]


def mutations(content: bytes, seeds: range) -> Iterator[bytes]:
    """Yield a content with bytes changed, cut out, doubled, or put in the place of others, by chance."""
    strange = (
        b"\x00",
        b"\xff" * 8,
        b"nan",
        b"1e999",
        b"-1",
        b'"',
        b"[" * 5_000,
        b"<!--",
        b"\n\n",
        b"\x7f" * 4,
        b"{}",
        b",",
    )
    for seed in seeds:
        chance, changed = random.Random(seed), bytearray(content)
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            place = chance.randrange(len(changed) + 1)
            length = min(chance.choice((1, 1, 4, 64, len(changed))), len(changed) - place)
            match chance.randrange(5):
                case 0:
                    changed[place : place + length] = chance.randbytes(length)
                case 1:
                    del changed[place : place + length]
                case 2:
                    changed[place:place] = changed[place : place + length]
                case 3:
                    changed[place : place + length] = chance.choice(strange)
                case _:
                    del changed[place:]
        yield bytes(changed)


def unpacked(path: Path) -> None:
    Archive(path).close()


def valid(kind: str, folder: Path) -> tuple[Path, tuple[Reader, ...]]:
    """Return a file of a kind, and what reads it."""
    path = folder / f"valid{kind}"
    match kind:
        case ".urdf":
            path.write_text(URDF)
            return path, (mechanism_from_urdf,)
        case ".json":
            mbsfmu.models.four_bar().to_file(path)
            return path, (CoupledModel.from_file, Mechanism.from_file)
        case ".fmu":
            description = (Path(__file__).parents[1] / "foreign_fmus" / "bouncing_ball.xml").read_text()
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("modelDescription.xml", description)
                archive.writestr(f"binaries/{host_platform()}/bouncing_ball.so", "no library")
            return path, (source_overview, validate, unpacked)
        case ".run":
            write_saved(path, {"model": "m"}, {"times": np.arange(3.0), "more": [1, "two", {"three": None}]})
            return path, (lambda each: read_saved(each, {"model": "m"}),)
        case _:
            mbsfmu.models.pendulum(1).simulation(compiled=False).run(0.01).to_file(path)
            return path, (Trajectory.from_file, lambda each: read_signals(f"@{each}", ("link_1.angle",)))


def sentence(reader: Reader, path: Path) -> str | None:
    """Return the sentence that a file is refused by; None where it is read. All else is raised."""
    try:
        reader(path)
    except (InputError, DataError) as error:
        return str(error)
    return None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of h5netcdf, where a file ends
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [*suffixes(), ".json", ".urdf", ".fmu", ".run"])
def test_damaged_files_are_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    path, readers = valid(kind, tmp_path)
    content, damaged = path.read_bytes(), tmp_path / f"damaged{kind}"
    for number, changed in enumerate(mutations(content, range(SEEDS))):
        damaged.write_bytes(changed)
        for reader in readers:
            found = sentence(reader, damaged)
            assert found is None or ("\n" not in found and found), f"seed {number}: {found}"
