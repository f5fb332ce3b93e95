"""Reference results inside an FMU: written by a run of the master, and checked by another one (FMI-LS-REF)."""

from __future__ import annotations

import csv
import io
import os
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lxml import etree
from numpy.typing import NDArray

from mbsfmu.base.archives import opened_archive
from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.cosim.runs.master import cosimulate
from mbsfmu.cosim.runs.run_recorder import CosimulationResult
from mbsfmu.fmu.validation import FOLDER, LAYERED, MANIFEST, NAME, entry_of

_VERSION = "1.0.0-alpha.1"
_SAYS = "Layered Standard providing information on related files included in an FMU."
_FILE = "reference.csv"
_TYPE, _ROLE = "text/csv", "result"
_MOST_ROWS = 500
"""Steps of a reference run, at most: some hundred rows show any motion, and thousands would be most of the FMU."""
_UNIT = "unit"
_LEAST_STEP = 1e-2  # s, where an FMU suggests no step


@dataclass(frozen=True)
class ReferenceDeviation:
    """How far an output of a run is from its reference.

    Attributes
    ----------
    file
        Of the reference results, in the archive.
    name
        Of the output.
    difference
        Largest difference at any time, in the unit of the output.
    share
        The same as a share of the largest magnitude of the reference; infinite where a reference of zero is missed.
    """

    file: str
    name: str
    difference: float
    share: float


def add_reference(path: str | os.PathLike[str]) -> Path:
    """Run an FMU for co-simulation as it suggests, and write the results into it.

    Parameters
    ----------
    path
        The FMU, which is replaced.

    Raises
    ------
    InputError
        When it has a manifest of related files already, or cannot be run.
    SimulationError
        When it fails.
    """
    target = Path(path)
    with opened_archive(target) as archive:
        if MANIFEST in archive.namelist():
            raise InputError(f"{target} has a manifest of related files already")
    run = _run(target, *_experiment(target))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = _outputs(run)
    writer.writerow(["time", *names])
    columns = [run.time, *(run[f"{_UNIT}.{name}"] for name in names)]
    writer.writerows([repr(float(each)) for each in row] for row in zip(*columns, strict=True))
    with complete_file(target) as partial:
        shutil.copyfile(target, partial)
        with zipfile.ZipFile(partial, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, _manifest())
            archive.writestr(f"{FOLDER}/{_FILE}", text.getvalue())
    return target


def check_reference(path: str | os.PathLike[str]) -> list[ReferenceDeviation]:
    """Run an FMU for co-simulation, and compare it with the reference results that it holds.

    The run has the communication points of the reference, and the start values of the FMU. References are files of role
    `result` and type `text/csv`: a column of times in s, in equal steps, and columns of outputs by their names.

    Parameters
    ----------
    path
        The FMU, ours or not.

    Returns
    -------
    list of ReferenceDeviation
        One for each output of each file.

    Raises
    ------
    InputError
        When the FMU has no such results, they do not read so, or it cannot be run.
    SimulationError
        When it fails.
    """
    return [each for file, times, columns in _references(Path(path)) for each in _compared(path, file, times, columns)]


def _compared(
    path: str | os.PathLike[str], file: str, times: NDArray[np.float64], columns: dict[str, NDArray[np.float64]]
) -> Iterator[ReferenceDeviation]:
    run = _run(Path(path), float(times[0]), float(times[-1]), float(times[1] - times[0]))
    known = _outputs(run)
    for name, values in columns.items():
        if name not in known:
            raise InputError(f"{path}: {file} has a column '{name}', which is no output of the FMU")
        found = np.array(run[f"{_UNIT}.{name}"])
        if found.shape != values.shape:
            raise InputError(f"{path}: {file} has {len(values)} rows, and the run of the FMU has {len(found)}")
        difference, size = float(np.max(np.abs(found - values))), float(np.max(np.abs(values)))
        share = 0.0 if difference == 0.0 else difference / size if size > 0.0 else np.inf
        yield ReferenceDeviation(file, name, difference, share)


def _references(path: Path) -> Iterator[tuple[str, NDArray[np.float64], dict[str, NDArray[np.float64]]]]:
    """Yield name, times and columns of the reference results of an FMU."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    try:
        with opened_archive(path) as archive:
            names = archive.namelist()
            root = etree.fromstring(archive.read(MANIFEST)) if MANIFEST in names else None
            related = [] if root is None else root.findall("Related")
            files = [
                entry_of(each.get("source") or "")
                for each in related
                if each.get("role") == _ROLE and each.get("type") == _TYPE
            ]
            texts = {file: archive.read(file).decode() for file in files if file is not None and file in names}
    except (zipfile.BadZipFile, etree.XMLSyntaxError, UnicodeDecodeError) as error:
        raise InputError(f"{path} has no manifest of related files that can be read: {error}") from None
    if not texts:
        raise InputError(f"{path} has no reference results: no file of role '{_ROLE}' and type '{_TYPE}' in {MANIFEST}")
    for file, text in texts.items():
        yield file, *_table(f"{path}: {file}", text)


def _table(where: str, text: str) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    rows = [row for row in csv.reader(io.StringIO(text)) if row]
    try:
        values = np.array([[float(cell) for cell in row] for row in rows[1:]])
    except ValueError as error:
        raise InputError(f"{where} is no table of numbers: {error}") from None
    if len(rows) < 3 or values.ndim != 2 or values.shape[1] != len(rows[0]) or not np.isfinite(values).all():
        raise InputError(f"{where} is no table of finite numbers with a header and at least two rows")
    times = values[:, 0]
    steps = np.diff(times)
    if not (steps[0] > 0.0 and np.all(np.abs(steps - steps[0]) <= 1e-6 * steps[0])):
        raise InputError(f"{where} has times that do not ascend in equal steps")
    return times, dict(zip(rows[0][1:], values[:, 1:].T, strict=True))


def _experiment(path: Path) -> tuple[float, float, float]:
    """Return start, stop and step in s of a reference run: the step that the FMU suggests, or a multiple of it."""
    with opened_archive(path) as archive:
        root = etree.fromstring(archive.read("modelDescription.xml"))
    experiment = root.find("DefaultExperiment")
    given = {} if experiment is None else dict(experiment.attrib)
    start, stop = float(given.get("startTime", 0.0)), float(given.get("stopTime", 1.0))
    step = float(given.get("stepSize", _LEAST_STEP))
    step *= max(1.0, np.ceil((stop - start) / step / _MOST_ROWS))
    count = max(1.0, np.floor((stop - start) / step * (1.0 + 1e-9)))
    return start, start + count * step, step


def _run(path: Path, start: float, stop: float, step: float) -> CosimulationResult:
    return cosimulate([f"{_UNIT}={path}"], start_time=start, stop=stop, step=step)


def _outputs(run: CosimulationResult) -> list[str]:
    return [name.removeprefix(f"{_UNIT}.") for name in run.names if name.startswith(f"{_UNIT}.")]


def _manifest() -> bytes:
    root = etree.Element("fmiReferences", nsmap={"fmi-ls": LAYERED})
    for key, value in (("name", NAME), ("version", _VERSION), ("description", _SAYS)):
        root.set(f"{{{LAYERED}}}fmi-ls-{key}", value)
    said = "Outputs of the FMU with its start values at equal communication steps, by the exporter's own master"
    etree.SubElement(root, "Related", type=_TYPE, source=_FILE, role=_ROLE, description=said)
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)
