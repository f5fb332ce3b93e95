"""An actuator of one's own, a single-acting ram: it balances its load, moves a mechanism, and stores what it must."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

import numpy as np
import pytest

from hydraulics import (
    Array,
    ChamberPort,
    Circuit,
    ComponentContext,
    DataError,
    HydraulicActuator,
    Oil,
    Parameter,
    Positive,
    Quantity,
    Space,
    Volume,
    balanced,
)
from mbsfmu import Actuator as Push
from mbsfmu import CoupledModel, Cuboid, Mechanism, Prismatic

MASS, GRAVITY, AREA, AIR, BULK, RESERVE = 200.0, 9.81, 5e-4, 101325.0, 1.5e9, 1e-3
LENGTH, SPEED = 0.5, 0.02


class Ram(HydraulicActuator):
    """A piston with oil on one side and the atmosphere on the other."""

    type: Literal["test-ram"] = "test-ram"
    bore: ChamberPort
    area: Annotated[Positive, Parameter("m2", "area of the piston")]
    retracted_length: Annotated[Positive, Parameter("m", "length when it is empty")]
    initial_load: Annotated[float, Parameter("N", "force at the start")] = 0.0

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("length", "m", 1.5 * self.retracted_length), Quantity("velocity", "m/s", 0.0))

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("force", "N", shared=True),)

    def displacements(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"bore": -now["area"] * now["velocity"]}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        return (Space("bore", now["area"] * np.maximum(now["length"] - now["retracted_length"], 0.0)),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"force": now["area"] * (now.pressure("bore") - AIR)}

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:
        return AIR + now["initial_load"] / now["area"]


def model(speed: float = SPEED) -> CoupledModel:
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -GRAVITY),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(Cuboid(name="load", length=0.2, mass=MASS),),
        joints=(
            Prismatic(
                name="guide",
                parent="ground.O",
                child="load.centre",
                axis=(0.0, 0.0, 1.0),
                displacement=LENGTH,
                velocity=speed,
            ),
        ),
        forces=(Push(name="ram", start="ground.O", end="load.centre"),),
    )
    circuit = Circuit(
        oil=Oil(bulk_modulus=BULK, density=850.0, air_content=0.0),
        components=(
            Ram(name="ram", bore="B", area=AREA, retracted_length=0.2),
            Volume(name="reserve", node="B", volume=RESERVE),
        ),
        initial_pressures={"B": balanced("ram")},
    )
    lines = {
        "circuit.ram.force": "mechanism.ram.force",
        "mechanism.ram.length": "circuit.ram.length",
        "mechanism.ram.velocity": "circuit.ram.velocity",
        "mechanism.ram.static_force": "circuit.ram.initial_load",
    }
    return CoupledModel(
        name="lift", systems={"mechanism": mechanism, "circuit": circuit}, connections=tuple(lines.items())
    )


def test_it_holds_its_load_at_rest() -> None:
    result = model(0.0).simulation(compiled=False).run(0.1)
    np.testing.assert_allclose(result["B.pressure"], AIR + MASS * GRAVITY / AREA, rtol=1e-9)
    np.testing.assert_allclose(result["ram.length"], LENGTH, rtol=1e-9)


def test_load_swings_on_the_oil_as_in_closed_form() -> None:
    """The oil's pressure is p₀ − K ln(V/V₀); what the load has of energy, gravity and oil have given."""
    result = (
        model()
        .simulation(formulation="dca", solver="dop853", relative_tolerance=1e-11, absolute_tolerance=1e-11)
        .run(0.3)
    )
    held, moved = RESERVE + AREA * (LENGTH - 0.2), result["ram.length"] - LENGTH
    pressure = AIR + MASS * GRAVITY / AREA - BULK * np.log1p(AREA * moved / held)
    np.testing.assert_allclose(result["B.pressure"], pressure, rtol=1e-6)
    grown = AREA * moved / held
    work = -BULK * held * ((1.0 + grown) * np.log1p(grown) - grown)  # of what the pressure differs from its start
    energy = 0.5 * MASS * (SPEED**2 - result["ram.velocity"] ** 2)
    np.testing.assert_allclose(work, -energy, atol=1e-6 * 0.5 * MASS * SPEED**2)
    frequency = AREA * np.sqrt(BULK / (held * MASS))
    swings = np.sum(np.diff(np.sign(moved[1:])) != 0.0)
    assert swings == int(0.3 * frequency / np.pi)
    assert swings > 2


@pytest.mark.parametrize("missing", ["mechanism.ram.velocity", "mechanism.ram.length"])
def test_all_of_its_motion_is_wanted(missing: str) -> None:
    whole = model()
    lines = tuple(line for line in whole.connections if line[0] != missing)
    with pytest.raises(DataError, match=f"nothing drives 'circuit.ram.{missing.rpartition('.')[2]}', though test-ram"):
        whole.model_copy(update={"connections": lines})
