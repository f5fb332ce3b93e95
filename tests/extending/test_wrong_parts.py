"""Parts of users that mean something else than they say are refused; built-in ones pass the same checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from documented import documented_components
from valves import all_valves, alone

import mbsfmu
from hydraulics import (
    Circuit,
    Component,
    ComponentContext,
    FilledPort,
    Flow,
    Hose,
    NonNegative,
    Oil,
    Parameter,
    Port,
    Positive,
    Quantity,
    Space,
    Tank,
    Volume,
)
from hydraulics.component import COMPONENTS
from mbsfmu import (
    Block,
    CoupledModel,
    Force,
    InputError,
    Mechanism,
    PointLoad,
    PointReference,
    Prismatic,
    RigidBody,
    SampledBlock,
)
from mbsfmu.modelling import DynamicPart, interpolated, tabulated
from mbsfmu.modelling.part import is_built_in
from mbsfmu.systems import model_systems


class Lag(Block):
    type: Literal["test-own-lag"] = "test-own-lag"
    delay: Annotated[Positive, Parameter("s", "time constant", tunable=True)] = 0.5
    start: Annotated[float, Parameter("1", "where it begins")] = 0.0

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1", nominal=self.delay),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def rates(self, now: Any) -> Mapping[str, Any]:
        return {"x": -now["x"] / self.delay}

    def evaluate_outputs(self, now: Any) -> Mapping[str, Any]:
        return {"y": now["x"]}


Curve = tuple[tuple[float, float], ...]


class Read(Block):
    """It takes the values of its table from the data."""

    type: Literal["test-own-read"] = "test-own-read"
    points: Annotated[Curve, Parameter("1", "output", tunable=True)] = ((0.0, 1.0), (1.0, 3.0))

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def evaluate_outputs(self, now: Any) -> Mapping[str, Any]:
        return {"y": interpolated(np.asarray(0.25), self.points)}


class Looked(Read):
    """It takes them from its parameters."""

    type: Literal["test-own-looked"] = "test-own-looked"

    def evaluate_outputs(self, now: Any) -> Mapping[str, Any]:
        return {"y": tabulated(np.asarray(0.25), now, "points", self.points)}


class Begun(Lag):
    """Its equations are right; where its state begins is not."""

    type: Literal["test-own-begun"] = "test-own-begun"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1", self.start, nominal=self.delay),)

    def rates(self, now: Any) -> Mapping[str, Any]:
        return {"x": -now["x"] / now["delay"]}


class BegunRightly(Begun):
    type: Literal["test-own-begun-rightly"] = "test-own-begun-rightly"

    def initial_states(self, now: Any) -> Mapping[str, Any]:
        return {"x": now["start"]}


class Held(SampledBlock):
    type: Literal["test-own-held"] = "test-own-held"
    gain: Annotated[float, Parameter("1", "gain", tunable=True)] = 2.0

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "1"),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("y", "1"),)

    def update(self, now: Any) -> Mapping[str, Any]:
        return {"x": now["x"] + 1.0}

    def evaluate_outputs(self, now: Any) -> Mapping[str, Any]:
        return {"y": self.gain * now["x"]}


class Drag(Force):
    type: Literal["test-own-drag"] = "test-own-drag"
    point: PointReference
    factor: Annotated[Positive, Parameter("N.s/m", "damping", tunable=True)] = 1.0

    def loads(self, now: Any) -> Iterable[PointLoad]:
        return (PointLoad("point", -self.factor * now.point("point").velocity),)

    def dissipation(self, now: Any) -> Any:
        return now["factor"] * now.point("point").velocity @ now.point("point").velocity


class Leak(Component):
    type: Literal["test-own-leak"] = "test-own-leak"
    inlet: Port
    outlet: Port
    conductance: Annotated[Positive, Parameter("m3/(s.Pa)", "flow by pressure")] = 1e-12

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        return (Flow(self.conductance * (now.pressure("inlet") - now.pressure("outlet")), "inlet", "outlet"),)


class Bag(Component):
    """A volume that a state, the ballast, makes larger; what it displaces is the share given of that."""

    type: Literal["test-own-bag"] = "test-own-bag"
    node: FilledPort
    speed: Annotated[NonNegative, Parameter("m3/s", "growth")] = 1e-6
    displaced: float = 0.0

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("ballast", "m3", nominal=1e-4),)

    def rates(self, now: ComponentContext) -> Mapping[str, Any]:
        return {"ballast": now["speed"]}

    def volumes(self, now: ComponentContext) -> Iterable[Space]:
        return (Space("node", 1e-3 + now["ballast"]),)

    def displacements(self, now: ComponentContext) -> Mapping[str, Any]:
        return {"node": -self.displaced * now["speed"]} if self.displaced else {}


def mechanism(*forces: Force) -> Mechanism:
    return Mechanism(
        ground={"O": (0.0, 0.0, 0.0), "side": (1.0, 0.0, 0.0)},
        bodies=(RigidBody(name="mass", mass=1.0, inertia=(1.0, 1.0, 1.0)),),
        joints=(Prismatic(name="fall", parent="ground.O", child="mass.origin", axis=(0.0, -1.0, 0.0)),),
        forces=forces,
    )


def circuit(*components: Component) -> Circuit:
    return Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0),
        components=(Tank(name="tank", node="T"), *components),
        initial_pressures={"A": 1e6},
    )


HOSE = Hose(name="hose", node="A", volume=1e-3, bulk_modulus=3e8)


@pytest.mark.parametrize(
    ("system", "field"),
    [
        (Lag(), "delay"),
        (Read(), "points"),
        (Held(sample_time=0.1), "gain"),
        (mechanism(Drag(name="drag", point="mass.origin")), "factor"),
        (circuit(HOSE, Leak(name="leak", inlet="A", outlet="T")), "conductance"),
    ],
)
def test_equations_that_read_data_are_refused(system: Any, field: str) -> None:
    """What is set would have no effect."""
    number = "points_1" if field == "points" else field
    told = f'reads self.{field}, which stays as it is in the data whatever is set; take now["{number}"]'
    with pytest.raises(InputError, match=rf"test-own-.* is refused: .*line \d+ .*{re.escape(told)}"):
        CoupledModel(name="m", systems={"own": system}).simulation(compiled=False)


def test_tables_of_users_are_parameters() -> None:
    simulation = CoupledModel(name="looked", systems={"own": Looked()}).simulation(compiled=False)
    simulation.set("points_1", 2.0)
    assert simulation.run(0.1)["own.y"] == pytest.approx(2.25, rel=1e-15)


def test_states_that_begin_where_data_say_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"states\(\) takes the start of 'x' from the parameter self\.start, and .* now\[\"start\"\]"
    ):
        CoupledModel(name="m", systems={"own": Begun(start=2.0)}).simulation(compiled=False)
    simulation = CoupledModel(name="m", systems={"own": BegunRightly(start=2.0)}).simulation(compiled=False)
    simulation.set("start", 3.0)
    simulation.initialize()
    assert simulation.get("y") == 3.0


@pytest.mark.parametrize(("displaced", "told"), [(0.0, "0"), (0.5, "-5e-07"), (-1.0, "1e-06")])
def test_volumes_that_grow_from_nothing_are_refused(displaced: float, told: str) -> None:
    bag = Bag(name="bag", node="A", displaced=displaced)
    expected = (
        rf"'bag' is refused: its volume at port 'node' changes by .*e-0[67] m3/s where displacements gives .*{told}"
    )
    with pytest.raises(InputError, match=expected):
        CoupledModel(name="m", systems={"own": circuit(bag)}).simulation(compiled=False)


def test_volumes_that_displace_what_they_grow_by_keep_their_oil() -> None:
    bag = Bag(name="bag", node="A", displaced=1.0)
    result = CoupledModel(name="m", systems={"own": circuit(bag)}).simulation(compiled=False, step=0.01).run(0.1)
    assert result["oil.mass"][-1] == pytest.approx(result["oil.mass"][0], rel=1e-9)
    assert result["A.pressure"][-1] < 0.95 * result["A.pressure"][0]


def test_built_in_components_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[type[DynamicPart]] = set()

    def as_of_a_user(kind: type[DynamicPart]) -> bool:
        seen.add(kind)
        return False

    monkeypatch.setattr(model_systems, "is_built_in", as_of_a_user)
    for model in (
        mbsfmu.models.four_bar(),
        CoupledModel(name="m", systems={"own": circuit(Volume(name="volume", node="A", volume=1e-3))}),
        CoupledModel(name="m", systems={"own": all_valves()}),
        *(CoupledModel(name="m", systems={"own": alone(each)}) for each in documented_components()),
    ):
        model.simulation(compiled=False)
    assert seen >= {kind for _, kind in COMPONENTS.known() if is_built_in(kind)}
