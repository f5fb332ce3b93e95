"""The energy of circuits: rates against differences, losses and stores against integrals, the order with the step."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import pytest
from hydraulic_bench import AIRLESS, AIRY, AREA_2, AREA_3, FRICTION, HOSE, OIL, WALL, paper_circuit
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from hydraulics import (
    Array,
    Circuit,
    CircuitEnergies,
    CircuitEquations,
    Cylinder,
    DataError,
    Hose,
    Oil,
    PressureSource,
    Tank,
    Throttle,
    Volume,
)
from hydraulics.cylinders import friction
from mbsfmu import CoupledModel, LinearSignal, StepSignal
from mbsfmu.models.hydraulic import four_bar
from mbsfmu.simulation.run_result import Result
from mbsfmu.tracing.symbols import expression, symbols

ATMOSPHERE = 101325.0
PLAIN = Oil(bulk_modulus=OIL, density=850.0, air_content=0.0)
LAWS = {
    "mass": PLAIN,
    "mass, air": AIRY,
    "mass, isothermal air": AIRY.model_copy(update={"polytropic_index": 1.0}),
    "volume": AIRLESS,
    "volume, air": AIRY.model_copy(update={"conserves": "volume"}),
}
STOP = 1e7
BENCHES = {
    name: CircuitEquations(paper_circuit(oil=oil, stop_stiffness=STOP, **FRICTION)) for name, oil in LAWS.items()
}
SUPPLIED, DELIVERED, DISSIPATED = range(3)
lengths = st.one_of(st.floats(0.905, 1.795), st.floats(0.88, 0.895), st.floats(1.805, 1.82))
"""Within the stroke, and beyond both stops."""
pressures = st.floats(1e3, 3e7)


def arrays(equations: CircuitEquations, **given: float) -> tuple[Array, Array, Array]:
    """States, inputs and parameters of a circuit with pressures, and whatever else is named."""
    values = {name.replace("__", "."): value for name, value in given.items()}
    parameters = {each.name: each.start for each in equations.parameters}
    if "oil.air_content" in parameters:
        scale = parameters["oil.air_content"] * OIL * ATMOSPHERE
        for name in [name for name in values if name.endswith(".pressure")]:
            gas = values.pop(name) - parameters["oil.vapour_pressure"]
            values[name.replace("pressure", "compression")] = gas - scale / gas
    groups = equations.states, equations.inputs
    states, inputs = (np.array([values.get(each.name, each.start or 0.0) for each in group]) for group in groups)
    return states, inputs, np.array(list(parameters.values()))


def volume(pressure: float, oil: Oil) -> float:
    """Volume of oil with its air, by that of the oil at atmospheric pressure."""
    gas = pressure - oil.vapour_pressure
    air = oil.air_content and oil.air_content * (ATMOSPHERE / gas) ** (1.0 / oil.polytropic_index)
    return float(np.exp((ATMOSPHERE - gas) / oil.bulk_modulus) + air)


def compressed(pressure: float, oil: Oil) -> float:
    """Work in J/m³ that it takes to bring oil from atmospheric pressure, that of its air, to a pressure."""
    begin = ATMOSPHERE + oil.vapour_pressure
    work, _ = quad(lambda p: volume(p, oil), begin, pressure, epsabs=1e-9, epsrel=1e-12)
    return work + begin * volume(begin, oil) - pressure * volume(pressure, oil)


def enthalpy(pressure: float, oil: Oil) -> float:
    return compressed(pressure, oil) + pressure * volume(pressure, oil)


# -- the balance at one moment ------------------------------------------------------------------------------


@cache
def storing(law: str) -> ca.Function:
    """The exact rate of the stored energy along the rates of states and the motion of the cylinder, and the powers."""
    equations = BENCHES[law]
    sizes = [len(each) for each in (equations.states, equations.inputs, equations.parameters)]
    made = [symbols(f"argument_{index}", size) for index, size in enumerate(sizes)]
    (states, _), (inputs, _), _ = made
    given = [array for _, array in made]
    stored = expression(CircuitEnergies(equations).evaluate_outputs(np.zeros(4), *given))[0]
    names = [each.name for each in equations.inputs]
    moving = ca.SX.zeros(len(names))
    moving[names.index("cylinder.length")] = inputs[names.index("cylinder.velocity")]
    rate = ca.jtimes(stored, states, expression(equations.rates(*given))) + ca.jtimes(stored, inputs, moving)
    return ca.Function(
        "storing", [each for each, _ in made], [rate, expression(CircuitEnergies(equations).powers(*given))]
    )


@pytest.mark.parametrize("law", LAWS)
@given(pressures, pressures, pressures, st.floats(-10.0, 10.0), lengths, st.floats(-0.5, 0.5))
def test_energy_changes_by_what_powers_say(
    law: str, one: float, two: float, three: float, spool: float, length: float, speed: float
) -> None:
    at = {"V1__pressure": one, "V2__pressure": two, "V3__pressure": three, "valve__spool": spool}
    given = arrays(BENCHES[law], **at, cylinder__length=length, cylinder__velocity=speed)
    rate, powers = (np.asarray(each).ravel() for each in storing(law)(*given))
    told = powers[SUPPLIED] - powers[DELIVERED] - powers[DISSIPATED]
    assert rate[0] == pytest.approx(told, rel=1e-9, abs=1e-9 * np.max(np.abs(powers)) + 1e-6)


@pytest.mark.parametrize("law", ["mass", "mass, air", "mass, isothermal air"])
def test_losses_are_those_of_throttling_and_friction(law: str) -> None:
    """By mass nothing else is lost in walls as stiff as these; a flow loses ∫ v dp, by the volume upstream."""
    oil = LAWS[law]
    circuit = paper_circuit(oil=oil, **FRICTION)
    parts = [each.to_dict() for each in circuit.components]
    for part in parts:
        if "bulk_modulus" in part:
            part["bulk_modulus"] = 1e16
    equations = CircuitEquations(Circuit.from_dict({**circuit.to_dict(), "components": parts}))
    at = {"V1__pressure": 6e6, "V2__pressure": 4e6, "V3__pressure": 2.5e6, "valve__spool": 4.0}
    given = arrays(equations, **at, cylinder__length=1.3, cylinder__velocity=0.2)
    outputs = dict(
        zip((each.name for each in equations.outputs), equations.evaluate_outputs(*given).tolist(), strict=True)
    )
    throttled = {
        (7.6e6, 6e6): outputs["valve.flow_a"],
        (6e6, 4e6): outputs["throttle.flow"],
        (2.5e6, 1e5): -outputs["valve.flow_b"],
    }
    lost = sum(
        flow / volume(high, oil) * quad(lambda p: volume(p, oil), low, high, epsrel=1e-12)[0]
        for (high, low), flow in throttled.items()
    )
    names = {name.split("_")[0]: value for name, value in FRICTION.items()}
    rubbing = friction(
        np.asarray(0.2),
        viscous=names["viscous"],
        coulomb=names["coulomb"],
        static=names["static"],
        stribeck_velocity=names["stribeck"],
        smoothing_velocity=names["smoothing"],
    )
    powers = CircuitEnergies(equations).powers(*given)
    assert powers[DISSIPATED] == pytest.approx(lost + 0.2 * rubbing, rel=1e-9)
    assert powers[DELIVERED] == pytest.approx(0.2 * (4e6 * AREA_2 - 2.5e6 * AREA_3 - rubbing), rel=1e-12)
    supplied = outputs["pump.flow"] / volume(7.6e6, oil) * enthalpy(7.6e6, oil)
    supplied += outputs["tank.flow"] / volume(1e5, oil) * enthalpy(1e5, oil)
    assert powers[SUPPLIED] == pytest.approx(supplied, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("pressure", [2e4, 1e6, 2.5e7])
def test_what_is_stored_is_the_work_that_compressed_it(law: str, pressure: float) -> None:
    oil = LAWS[law]
    equations = CircuitEquations(
        Circuit(
            oil=oil,
            components=(Hose(name="hose", node="A", volume=2e-3, bulk_modulus=HOSE),),
            initial_pressures={"A": pressure},
        )
    )
    held = 2e-3 * (1.0 + (pressure - ATMOSPHERE) / HOSE * (oil.conserves == "mass"))
    walls = 2e-3 * (pressure**2 - ATMOSPHERE**2) / (2.0 * HOSE)
    if law == "volume":  # by ∫ p dp / K
        oiled = held * (pressure**2 - ATMOSPHERE**2) / (2.0 * OIL)
    else:
        oiled = held * compressed(pressure, oil) / volume(pressure, oil)
    given = arrays(equations, A__pressure=pressure)
    stored = CircuitEnergies(equations).evaluate_outputs(np.zeros(4), *given)[0]
    assert stored == pytest.approx(oiled + walls, rel=1e-9, abs=1e-8)


# -- runs ---------------------------------------------------------------------------------------------------


def energies(result: Result, *names: str) -> list[Array]:
    return [result[f"hydraulic_energy.{name}"] for name in names]


def test_filling_a_bottle_loses_what_is_not_stored() -> None:
    """All the oil comes with the enthalpy that it has at the source; at rest none is lost any more."""
    oil = AIRY
    circuit = Circuit(
        oil=oil,
        components=(
            PressureSource(name="pump", node="P", pressure=2e7),
            Throttle(name="throttle", inlet="P", outlet="A", orifice_diameter=2e-3, discharge_coefficient=0.7),
            Volume(name="bottle", node="A", volume=1e-2),
        ),
        initial_pressures={"A": 1e5},
    )
    model = CoupledModel(name="filling", systems={"circuit": circuit})
    result = model.simulation(solver="rodas5p", relative_tolerance=1e-8, compiled=False).run(2.0)
    assert result["A.pressure"][-1] == pytest.approx(2e7, rel=1e-9)
    amounts = [1e-2 / volume(pressure, oil) for pressure in (1e5, 2e7)]
    supplied, dissipated, stored, drift = energies(result, "supplied", "dissipated", "stored", "drift")
    assert supplied[-1] == pytest.approx((amounts[1] - amounts[0]) * enthalpy(2e7, oil), rel=1e-6)
    assert stored[-1] == pytest.approx(amounts[1] * compressed(2e7, oil), rel=1e-8)
    assert dissipated[-1] == pytest.approx(supplied[-1] - np.ptp(stored), rel=1e-6)
    assert np.max(np.abs(drift)) < 1e-6 * supplied[-1]


@pytest.mark.parametrize("oil", [PLAIN, AIRY, AIRLESS], ids=["mass", "air", "volume"])
def test_a_closed_chamber_gives_back_what_compressed_it(oil: Oil) -> None:
    """A ram pressed into a closed bore and let out again: work is stored, and none is lost."""
    circuit = Circuit(
        oil=oil,
        components=(
            Volume(name="bottle", node="A", volume=1e-4),
            Tank(name="tank", node="T"),
            Hose(name="hose", node="B", volume=1e-3, bulk_modulus=HOSE),
            Throttle(name="open", inlet="B", outlet="T", orifice_diameter=2e-2, discharge_coefficient=1.0),
            Cylinder(
                name="cylinder",
                piston="A",
                rod="B",
                piston_diameter=0.05,
                rod_diameter=0.049,
                stroke=0.5,
                retracted_length=0.7,
                bulk_modulus=WALL,
            ),
        ),
        initial_pressures={"A": 2e5, "B": 1e5},
    )
    signals = {
        "circuit.cylinder.length": LinearSignal(times=(0.0, 0.5, 1.0), values=(0.95, 0.945, 0.95)),
        "circuit.cylinder.velocity": StepSignal(times=(0.0, 0.5, 1.0), values=(-0.01, 0.01, 0.0)),
    }
    model = CoupledModel(name="chamber", systems={"circuit": circuit}, signals=signals)
    result = model.simulation(step=5e-4, compiled=False).run(1.0)
    pressed = len(result.time) // 2
    names = "supplied", "delivered", "dissipated", "stored", "drift"
    supplied, delivered, dissipated, stored, drift = energies(result, *names)
    force = result["cylinder.force"]
    work = np.concatenate([[0.0], np.cumsum(-0.5 * (force[1:] + force[:-1]) * np.diff(result["cylinder.length"]))])
    assert result["A.pressure"].max() > 1.5e7
    np.testing.assert_allclose(-delivered, work, atol=1e-9 * work.max())
    # Fresh walls leave a share p / 2 K open of the work, the simpler law for oil without air by volume one of the oil.
    share = 1.5e7 / (2.0 * (OIL if oil is AIRLESS else WALL))
    gained = (stored - supplied)[pressed] - stored[0]
    assert gained == pytest.approx(work[pressed], rel=1.5 * share)
    assert np.all(np.abs(dissipated) < 1.5 * share * work.max())
    assert abs(dissipated[-1]) < 1e-6 * work.max()
    assert np.max(np.abs(drift)) < 2e-5 * work.max()


@pytest.mark.parametrize("conserves", ["mass", "volume"])
def test_the_balance_of_a_machine_closes_with_the_square_of_the_step(conserves: str) -> None:
    model = four_bar(conserves=conserves)  # type: ignore[arg-type]
    drifts = []
    for step in (2e-3, 1e-3):
        result = model.simulation(step=step).run(3.0)
        supplied, delivered, dissipated, drift = energies(result, "supplied", "delivered", "dissipated", "drift")
        np.testing.assert_allclose(delivered, result["energy.work"], rtol=1e-9, atol=1e-9)
        assert np.all(np.diff(dissipated) > -1e-6 * dissipated[-1])
        drifts.append(np.max(np.abs(drift)) / supplied.max())
        whole = (
            np.sum(energies(result, "stored", "dissipated"), axis=0)
            + np.sum([result[f"energy.{name}"] for name in ("kinetic", "potential", "dissipated")], axis=0)
            - supplied
        )
        told = result.summary()
        assert told["machine_energy_drift_max"] == pytest.approx(np.max(np.abs(whole - whole[0])), rel=1e-3)
        assert told["machine_energy_drift_max"] < 3e-5 * supplied.max()
        assert told["hydraulic_energy_drift_max"] == np.max(np.abs(drift))
    assert drifts[0] < 3e-5
    assert np.log2(drifts[0] / drifts[1]) == pytest.approx(2.0, abs=0.1)


def test_the_name_of_the_energies_is_no_components() -> None:
    parts = paper_circuit().to_dict()
    parts["components"][0]["name"] = "hydraulic_energy"
    with pytest.raises(DataError, match="'hydraulic_energy' stands for the energies of the circuit and cannot be a"):
        Circuit.from_dict(parts)
