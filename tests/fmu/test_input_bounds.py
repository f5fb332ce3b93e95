"""Inputs that saturate have bounds in every description, and take values beyond them, which act as the bound."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fmpy import read_model_description, simulate_fmu

import mbsfmu
from hydraulics import Component, DirectionalValve, ProportionalValve, VariableOrifice, VariablePump, two_way
from mbsfmu.fmu.description_elements import quantity_attributes
from mbsfmu.modelling.variables import Causality, Variable
from mbsfmu.systems.part_variables import part_variable

VALVE = {"supply": "P", "tank": "T", "a": "A", "b": "B"}
PARTS: list[tuple[Component, tuple[float, float]]] = [
    (DirectionalValve(name="v", **VALVE, flow_coefficient=1e-8, time_constant=0.01, command_limit=4.0), (-4.0, 4.0)),
    (ProportionalValve(name="v", supply="P", a="A", edges=two_way(), rated_flow=1e-3, rated_drop=5e5), (-1.0, 1.0)),
    (
        VariablePump(
            name="v", inlet="T", outlet="P", displacement=1e-5, speed=100.0, time_constant=0.1, minimum_swash=-0.5
        ),
        (-0.5, 1.0),
    ),
    (
        VariableOrifice(
            name="v", inlet="P", outlet="T", area=1e-5, discharge_coefficient=0.6, points=((0.1, 0.0), (0.4, 1.0))
        ),
        (0.1, 0.4),
    ),
]


@pytest.mark.parametrize(("part", "bounds"), PARTS, ids=lambda each: getattr(each, "type", ""))
def test_commands_have_the_bounds_at_which_they_saturate(part: Component, bounds: tuple[float, float]) -> None:
    command = part_variable(part.inputs()[0], Causality.INPUT)
    assert (command.minimum, command.maximum) == bounds
    assert command.accepted == (None, None)


def test_the_start_of_a_description_is_within_its_bounds() -> None:
    """A command of 0 on a table from 0.1 on; what does not saturate keeps its bounds."""
    given = Variable("u", Causality.INPUT, start=0.0, minimum=0.1, maximum=0.4, saturates=True)
    assert quantity_attributes(given, None) == {"unit": "1", "min": "0.0", "max": "0.4"}
    above = Variable("u", Causality.INPUT, start=2.0, minimum=0.1, maximum=0.4, saturates=True)
    assert quantity_attributes(above, None) == {"unit": "1", "min": "0.1", "max": "2.0"}
    refused = Variable("p", Causality.INPUT, start=0.2, minimum=0.1, maximum=0.4)
    assert quantity_attributes(refused, None) == {"unit": "1", "min": "0.1", "max": "0.4"}
    assert refused.accepted == (0.1, 0.4)


@pytest.mark.parametrize("fmi", [2, 3])
def test_an_fmu_tells_the_bounds_and_takes_more(tmp_path: Path, fmi: int) -> None:
    (file,) = mbsfmu.export(mbsfmu.models.four_bar(), tmp_path, layout="monolithic", fmi=fmi, step=1e-3)
    text = zipfile.ZipFile(file).read("modelDescription.xml").decode()
    (element,) = re.findall(r'name="valve\.command"[^>]*(?:>\s*<Real[^>]*)?>', text)
    assert 'min="-10.0"' in element
    assert 'max="10.0"' in element
    assert read_model_description(file) is not None  # against the schema
    ends = []
    for command in (10.0, 25.0):
        signal = np.array([(0.0, command), (0.1, command)], dtype=[("time", float), ("valve.command", float)])
        run = simulate_fmu(str(file), stop_time=0.1, step_size=1e-3, input=signal, output=["valve.spool", "boom.angle"])
        ends.append((float(run["valve.spool"][-1]), float(run["boom.angle"][-1])))
    assert ends[1] == pytest.approx(ends[0], rel=1e-8)
    assert ends[0][0] == pytest.approx(10.0, rel=0.02)


def test_a_start_value_beyond_is_taken() -> None:
    model = mbsfmu.models.four_bar().model_copy(update={"signals": {}, "start": {"circuit.valve.command": 30.0}})
    assert model.simulation(compiled=False, step=1e-3).run(0.05)["valve.spool"][-1] <= 10.0
