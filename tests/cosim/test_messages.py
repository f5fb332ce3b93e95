"""What units say reaches the run that they belong to, whatever their names are."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import mbsfmu
from mbsfmu.base.errors import SimulationError
from mbsfmu.base.repeated_warnings import alike
from mbsfmu.cosim.fmus.archive import Archive
from mbsfmu.cosim.fmus.fmi2 import Fmi2Instance
from mbsfmu.cosim.fmus.fmu_instance import logger
from mbsfmu.cosim.runs import preparation


def test_two_units_of_one_name_keep_their_reasons(tmp_path: Path) -> None:
    """Both refuse a mass within the bounds of its description, each another one, and each tells its own."""
    (path,) = mbsfmu.export(mbsfmu.models.pendulum(1), tmp_path, layout="monolithic")
    with ExitStack() as stack:
        archive = Archive(path)
        stack.callback(archive.close)
        pair = [Fmi2Instance("pendulum", archive) for _ in range(2)]
        for instance in pair:
            stack.callback(instance.close)
            instance.setup(0.0, 1.0)
        for instance, mass in (*zip(pair, (1e200, 2e200), strict=True), (pair[0], 3e200)):
            with pytest.raises(SimulationError) as caught:
                instance.set_start("link_1.mass", mass)
            assert f"link_1.mass = {mass:g} kg is refused" in str(caught.value)


def test_what_many_units_say_at_the_start_is_told_once_with_their_number(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Isolated ones have their messages written already; what differs by more than numbers is another warning.

    Errors are no warnings, and are told where they happen.
    """
    monkeypatch.setattr(preparation, "initialize_values", lambda *_: None)
    monkeypatch.setattr(preparation, "CouplingData", lambda *_: SimpleNamespace(members=()))
    said: dict[str, tuple[Any, ...]] = {
        "left": ("%s [%s]: %s", "left", "logStatusWarning", "left: arm_2 would move at -1.5e-03 m/s2"),
        "right": ("%s", "right [logStatusWarning]: right: arm_2 would move at 2 m/s2"),
        "other": ("%s [%s]: %s", "other", "logStatusWarning", "other: arm_3 would move at 2 m/s2"),
    }

    def nothing(*_: Any) -> None:
        pass

    def instance(name: str) -> Any:
        start = SimpleNamespace(setup=nothing, enter_initialization=nothing)
        start.exit_initialization = lambda: (logger.warning(*said[name]), logger.error("%s [error]: it ends", name))
        return start

    none = ({}, [], SimpleNamespace(), SimpleNamespace(propagate=nothing), {}, 1, 0.0, 1.0, None)
    preparation.initialize({name: instance(name) for name in said}, [], *none)
    assert [each.levelname for each in caplog.records] == [*["ERROR"] * 3, *["WARNING"] * 2]
    assert caplog.messages[:3] == [f"{name} [error]: it ends" for name in said]
    assert caplog.messages[3:] == [
        "2 of 3 FMUs, first left [logStatusWarning]: arm_2 would move at -1.5e-03 to 2 m/s2",
        "other [logStatusWarning]: arm_3 would move at 2 m/s2",
    ]
    logger.warning(*said["left"])
    assert caplog.messages[-1] == "left [logStatusWarning]: left: arm_2 would move at -1.5e-03 m/s2"


def test_what_one_unit_says_of_two_things_is_not_one() -> None:
    said = [("a", "row 3 falls"), ("a", "row 17 falls"), ("b", "row 5 falls"), ("a", "row 17 falls"), ("b", "no row 4")]
    assert alike(said) == [("row 3 to 5 falls", ["a", "b"]), ("row 17 falls", ["a"]), ("no row 4", ["b"])]


def test_what_is_worst_is_told_of_all() -> None:
    """Whether the greatest or the least is worst: both are there, as they were written; NaN has no order."""
    said = [
        (n, f"from t = {t} s on {x} Pa at A_1, {r} m")
        for n, t, x, r in ((1, 0.2, "3e4", 1), (2, 0.1, "-5", 1), (3, 9, "7", "nan"))
    ]
    assert alike(said) == [("from t = 0.1 to 9 s on -5 to 3e4 Pa at A_1, nan m", [1, 2, 3])]
