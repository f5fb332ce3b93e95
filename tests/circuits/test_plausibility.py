"""What is hardly meant is warned of, in one sentence each; what is usual is not."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hydraulic_bench import AREA_2, AREA_3, paper_circuit

import mbsfmu
from hydraulics import Circuit, DataError, catalogue_coefficient
from hydraulics.circuit import plausibility_warnings
from mbsfmu import CoupledModel, StepSignal

MEANT = "which is implausible; numbers are in SI units"


def changed(name: str, **fields: Any) -> Circuit:
    """The circuit of the paper with other numbers in one component."""
    data = paper_circuit().to_dict()
    parts = [{**each, **fields} if each["name"] == name else each for each in data["components"]]
    return Circuit.from_dict({**data, "components": parts})


@pytest.mark.parametrize("circuit", mbsfmu.models.CIRCUITS)
def test_built_in_models_are_plausible(circuit: str) -> None:
    systems = mbsfmu.models.four_bar(circuit).systems.values()
    assert not [each for data in systems if isinstance(data, Circuit) for each in plausibility_warnings(data)]


@pytest.mark.parametrize(
    ("name", "fields", "sentences"),
    [
        (
            "cylinder",
            {"piston_diameter": 160.0},
            [f"cylinder 'cylinder': piston_diameter is 160 m, more than 3 m, {MEANT}"],
        ),
        ("cylinder", {"stroke": 900.0}, [f"cylinder 'cylinder': stroke is 900 m, more than 50 m, {MEANT}"]),
        (
            "pump",
            {"pressure": 250.0},
            [
                f"pressure-source 'pump': pressure is 250 Pa, less than 1000 Pa, {MEANT}",
                "pressure-source 'pump' has a pressure of 250 Pa, below that of tank 'tank', 100000 Pa: oil flows into "
                "it; 1 bar is 1e5 Pa",
            ],
        ),
        (
            "pump",
            {"pressure": 5e4},
            [
                "pressure-source 'pump' has a pressure of 50000 Pa, below that of tank 'tank', 100000 Pa: oil flows "
                "into it; 1 bar is 1e5 Pa",
            ],
        ),
        ("tank", {"pressure": 1.0}, [f"tank 'tank': pressure is 1 Pa, less than 1000 Pa, {MEANT}"]),
        (
            "valve",
            {"flow_coefficient": 2.5},
            [f"directional-valve 'valve': flow_coefficient is 2.5 m3/(s.V), more than 0.001 m3/(s.V), {MEANT}"],
        ),
        (
            "throttle",
            {"orifice_diameter": 6.0},
            [f"throttle 'throttle': orifice_diameter is 6 m, more than 0.5 m, {MEANT}"],
        ),
        ("hose_1", {"bulk_modulus": 150.0}, [f"hose 'hose_1': bulk_modulus is 150 Pa, less than 1e+06 Pa, {MEANT}"]),
        ("hose_1", {"volume": 0.6}, [f"hose 'hose_1': volume is 0.6 m3, more than 0.5 m3, {MEANT}"]),
    ],
)
def test_numbers_in_other_units_are_told(name: str, fields: dict[str, float], sentences: list[str]) -> None:
    assert list(plausibility_warnings(changed(name, **fields))) == sentences


def test_starts_in_vacuum_are_told() -> None:
    data = paper_circuit().to_dict()
    circuit = Circuit.from_dict({**data, "initial_pressures": {**data["initial_pressures"], "V3": 35.0}})
    assert list(plausibility_warnings(circuit)) == [
        f"initial_pressures: that of node 'V3' is 35 Pa, less than 500 Pa, {MEANT}"
    ]


def test_a_simulation_says_so(caplog: pytest.LogCaptureFixture) -> None:
    model = CoupledModel(
        name="alone",
        systems={"circuit": changed("throttle", orifice_diameter=6.0)},
        signals={"circuit.valve.command": StepSignal(times=(0.0,), values=(0.0,))},
    )
    with caplog.at_level(logging.WARNING):
        model.simulation(compiled=False)
    assert [each for each in caplog.messages if "implausible" in each] == [
        f"circuit: throttle 'throttle': orifice_diameter is 6 m, more than 0.5 m, {MEANT}"
    ]


@pytest.mark.parametrize(
    ("point", "sentence"),
    [
        (
            (100.0, 35e5, 10.0),
            "catalogue_coefficient: flow is 100 m3/s; it must be at most 10, and 100 l/min are 100 / 60e3 m3/s",
        ),
        (
            (100.0 / 60e3, 35.0, 10.0),
            "catalogue_coefficient: pressure_drop is 35 Pa; it must be at least 1000, and 35 bar are 35e5 Pa",
        ),
    ],
)
def test_points_of_a_catalogue_are_in_si_units(point: tuple[float, float, float], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        catalogue_coefficient(*point)
    assert str(caught.value) == sentence


# -- loads that pull ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "given", "balancing", "areas", "verb"),
    [(-2e4, "V3", "V2", (AREA_3, AREA_2), "pulled"), (2e4, "V2", "V3", (AREA_2, AREA_3), "pushed")],
)
def test_loads_that_no_pressure_balances_are_told(
    load: float, given: str, balancing: str, areas: tuple[float, float], verb: str
) -> None:
    data = changed("cylinder", initial_load=load).to_dict()
    starts = {given: 1e5, balancing: {"actuator": "cylinder"}, "V1": 1e6}
    model = CoupledModel(
        name="alone",
        systems={"circuit": Circuit.from_dict({**data, "initial_pressures": starts})},
        signals={"circuit.valve.command": StepSignal(times=(0.0,), values=(0.0,))},
    )
    with pytest.raises(mbsfmu.InputError) as caught:
        model.simulation(compiled=False).run(0.1)
    assert str(caught.value) == (
        f"{balancing}.pressure starts at {(1e5 * areas[0] - 2e4) / areas[1]:.6g} Pa; it must be above 0: cylinder "
        f"'cylinder', which it balances, is {verb} with 20000 N; let the pressure at '{given}' start above "
        f"{2e4 / areas[0]:.6g} Pa, or balance that one and give '{balancing}' a number"
    )
