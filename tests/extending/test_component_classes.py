"""A class of components that lacks something is refused where it is defined, or where its functions answer."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from hydraulics import (
    Array,
    Circuit,
    CircuitEquations,
    Component,
    ComponentContext,
    DataError,
    Flow,
    HeldPort,
    Hose,
    NonNegative,
    Oil,
    OptionalPort,
    OptionalPositive,
    OptionalSensedPort,
    Parameter,
    Port,
    Positive,
    Quantity,
    SensedPort,
    Space,
    Tank,
    orifice_flow,
)
from mbsfmu import CoupledModel, InputError, load_parts
from mbsfmu.modelling.part import PartFile, given_kinds, kept_apart


class Leak(Component):
    """A leak whose flow goes by the drop of pressure, through a fatiguing wall."""

    type: Literal["test-leak"] = "test-leak"
    inlet: Port
    outlet: Port
    conductance: Annotated[Positive, Parameter("m3/(s.Pa)", "flow by the drop of pressure", tunable=True)]
    growth: Annotated[NonNegative, Parameter("1/s", "rate at which it grows")] = 0.0
    label: str = ""

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("wear", "1", 1.0, description="by what it has grown"),)

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("shock", "1", 0.0, description="beats upon it"),)

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("flow", "m3/s", shared=True), Quantity("oil_density", "kg/m3"))

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        drop = now.pressure("inlet") - now.pressure("outlet")
        return (Flow(now["wear"] * now["conductance"] * drop, "inlet", "outlet"),)

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"wear": now["growth"] + now["shock"]}

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        (flow,) = self.flows(now)
        return {"oil_density": now.oil.density, "flow": flow.flow}


def circuit(*components: Component | dict[str, Any]) -> Circuit:
    return Circuit(
        oil=Oil(bulk_modulus=1.5e9, density=850.0, air_content=0.0),
        components=(
            Tank(name="tank", node="T"),
            Hose(name="hose", node="A", volume=1e-4, bulk_modulus=1.5e8),
            *components,
        ),
        initial_pressures={"A": 2e6},
    )


LEAK = {"type": "test-leak", "name": "leak", "inlet": "A", "outlet": "T", "conductance": 1e-11, "growth": 0.5}


def test_component_of_ones_own_gives_the_circuit_what_it_declares() -> None:
    equations = CircuitEquations(circuit(LEAK))
    assert [each.name for each in equations.states] == ["A.pressure", "leak.wear"]
    assert [each.start for each in equations.states] == [None, None]  # from where parameters say
    assert [each.name for each in equations.inputs] == ["leak.shock"]
    assert [(each.name, each.shared) for each in equations.outputs if each.name.startswith("leak")] == [
        ("leak.flow", True),
        ("leak.oil_density", False),
    ]
    own = {each.name: each for each in equations.parameters if each.name.startswith("leak")}
    assert list(own) == ["leak.conductance", "leak.growth"]
    conductance, growth = own.values()
    assert (conductance.unit, conductance.start, conductance.minimum, conductance.tunable) == (
        *("m3/(s.Pa)", 1e-11, pytest.approx(1e-12)),
        True,
    )
    assert (growth.minimum, growth.maximum, growth.tunable) == (0.0, None, False)


def test_flows_of_ones_own_component_change_pressures() -> None:
    equations = CircuitEquations(circuit(LEAK))
    parameters = np.array([each.start for each in equations.parameters])
    assert equations.initial_states(parameters) == pytest.approx([2e6, 1.0])
    rates = equations.rates(np.array([3e6, 1.4]), np.array([0.25]), parameters)
    flow = 1.4 * 1e-11 * (3e6 - 1e5)
    capacity = 1e-4 * ((1.0 + (3e6 - 101325.0) / 1.5e8) / 1.5e9 + 1.0 / 1.5e8)
    assert rates == pytest.approx([-flow / capacity, 0.5 + 0.25], rel=1e-14)
    outputs = dict(
        zip(
            [each.name for each in equations.outputs],
            equations.evaluate_outputs(np.array([3e6, 1.4]), np.array([0.25]), parameters),
            strict=True,
        )
    )
    assert outputs["leak.flow"] == pytest.approx(flow, rel=1e-14)
    assert outputs["tank.flow"] == pytest.approx(-flow * np.exp((3e6 - 1e5) / 1.5e9), rel=1e-14)  # it expands
    assert outputs["leak.oil_density"] == 850.0


def test_json_means_a_component_of_ones_own_by_its_type() -> None:
    made = circuit(LEAK)
    again = Circuit.from_dict(made.to_dict())
    assert again == made
    assert type(again.components[-1]) is Leak
    assert made.to_dict()["components"][-1] == {**LEAK, "label": ""}


def refused(define: Callable[[], object], *words: str) -> None:
    with pytest.raises(DataError) as caught:
        define()
    for word in words:
        assert word in str(caught.value)


def no_type() -> None:
    class Nameless(Component):
        node: HeldPort


def inherited_type() -> None:
    class Longer(Leak):
        length: float


def no_port() -> None:
    class Portless(Component):
        type: Literal["test-portless"] = "test-portless"


def idle_port() -> None:
    class Idle(Component):
        type: Literal["test-idle"] = "test-idle"
        inlet: Port


def empty_volume() -> None:
    class Empty(Component):
        type: Literal["test-empty"] = "test-empty"
        node: HeldPort

        def volumes(self, now: ComponentContext) -> Iterable[Space]:
            return ()


def states_without_rates() -> None:
    class Still(Hose):
        type: Literal["test-still"] = "test-still"

        def states(self) -> tuple[Quantity, ...]:
            return (Quantity("x", "m"),)


def outputs_without_values() -> None:
    class Mute(Hose):
        type: Literal["test-mute"] = "test-mute"

        def outputs(self) -> tuple[Quantity, ...]:
            return (Quantity("x", "m"),)


def parameter_that_is_a_word() -> None:
    class Vague(Hose):
        type: Literal["test-vague"] = "test-vague"
        bore: Annotated[str, Parameter("m", "bore")] = "wide"


def parameter_with_the_name_of_a_function() -> None:
    class Odd(Hose):
        type: Literal["test-odd"] = "test-odd"
        rates: Annotated[float, Parameter("m", "odd")] = 1.0


def taken_type() -> None:
    class Other(Hose):
        type: Literal["hose"] = "hose"


def type_of_another_class() -> None:
    class Twin(Hose):
        type: Literal["test-leak"] = "test-leak"


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (no_type, ("class Nameless: a component has a type of its own", 'type: Literal["my-part"]')),
        (inherited_type, ("class Longer: a component has a type of its own",)),
        (no_port, ("class Portless: a component needs a port",)),
        (idle_port, ("class Idle: its port 'inlet' lets oil through, but it has no flows or displacements",)),
        (empty_volume, ("class Empty: its port 'node' holds it at a pressure, but it has no held_pressures",)),
        (states_without_rates, ("class Still: it has states, but no rates",)),
        (outputs_without_values, ("class Mute: it has outputs, but no evaluate_outputs",)),
        (parameter_that_is_a_word, ("class Vague: the parameter 'bore' must be a number",)),
        (taken_type, ("class Other of", "test_component_classes.py", "'hose' is taken by Hose of hydraulics.storage")),
        (type_of_another_class, ("class Twin of", "'test-leak' is taken by Leak of", "test_component_classes.py")),
    ],
)
def test_classes_that_lack_something_are_refused(define: Callable[[], object], words: tuple[str, ...]) -> None:
    refused(define, *words)


TWIN = """
from typing import Literal
from hydraulics import Hose

class Twin(Hose):
    type: Literal["test-{name}"] = "test-{name}"
"""


def test_a_type_of_another_file_is_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("twin_one", "twin_other"):
        (tmp_path / f"{name}.py").write_text(TWIN.format(name="twin"))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("twin_one")
    refused(
        lambda: importlib.import_module("twin_other"),
        f"class Twin of {tmp_path / 'twin_other.py'}: the component type 'test-twin' is taken by Twin of ",
        "twin_one.py",
    )


def test_a_file_defines_a_type_once(tmp_path: Path) -> None:
    file = tmp_path / "doubled.py"
    file.write_text(TWIN.format(name="doubled") + TWIN.format(name="doubled").replace("Twin", "Second"))
    with pytest.raises(InputError, match=r"class Second of .* 'test-doubled' is taken by Twin of "):
        load_parts([file])


def test_fields_must_not_hide_functions() -> None:
    with pytest.warns(UserWarning, match="shadows"):
        refused(parameter_with_the_name_of_a_function, "class Odd: a field cannot be called 'rates'")


def redefined(factor: float) -> type[Component]:
    class Again(Component):
        type: Literal["test-again"] = "test-again"
        inlet: Port
        outlet: Port

        def flows(self, now: ComponentContext) -> Iterable[Flow]:
            return (Flow(factor * orifice_flow(1e-8, now.pressure("inlet"), 2e5), "inlet", "outlet"),)

    return Again


def test_a_class_that_is_defined_anew_replaces_the_old_one() -> None:
    redefined(1.0)
    newer = redefined(2.0)
    made = circuit({"type": "test-again", "name": "again", "inlet": "A", "outlet": "T"})
    assert type(made.components[-1]) is newer


def test_kinds_that_are_kept_apart_are_seen_where_they_are_given() -> None:
    with kept_apart(__name__, PartFile(__file__, "")) as kinds:

        class Hidden(Hose):
            type: Literal["test-hidden"] = "test-hidden"

    data = {"type": "test-hidden", "name": "hidden", "node": "A", "volume": 1e-4, "bulk_modulus": 1e8}
    refused(lambda: circuit(data), "components[2].type is 'test-hidden'", "--parts FILE")
    with given_kinds(kinds):
        assert type(circuit(data).components[-1]) is Hidden
    refused(lambda: circuit(data), "components[2].type is 'test-hidden'")
    assert type(circuit(Hidden.from_dict(data)).components[-1]) is Hidden


# -- what may be left out -----------------------------------------------------------------------------------


class Piloted(Component):
    """A leak that a pilot opens, with a drain and with a lag where these are given."""

    type: Literal["test-piloted"] = "test-piloted"
    inlet: Port
    outlet: Port
    pilot: SensedPort
    drain: OptionalPort = None
    shield: OptionalSensedPort = None
    conductance: Annotated[Positive, Parameter("m3/(s.Pa2)", "flow by the drop of pressure and the pilot's")] = 1e-18
    lag: Annotated[OptionalPositive, Parameter("s", "time constant")] = None

    def states(self) -> tuple[Quantity, ...]:
        return () if self.lag is None else (Quantity("late", "Pa", description="pilot pressure, late"),)

    def rates(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"late": (self._pilot(now) - now["late"]) / now["lag"]} if "lag" in now else {}

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        opening = now["conductance"] * (now["late"] if "lag" in now else self._pilot(now))
        for target in ("outlet", "drain"):
            if target in self.ports():
                yield Flow(opening * (now.pressure("inlet") - now.pressure(target)), "inlet", target)

    def _pilot(self, now: ComponentContext) -> Array:
        shield = now.pressure("shield") if "shield" in self.ports() else 0.0
        return now.pressure("pilot") - shield


PILOTED = {"type": "test-piloted", "name": "leak", "inlet": "A", "outlet": "T", "pilot": "A"}


def piloted(**fields: Any) -> CircuitEquations:
    other = {"type": "tank", "name": "other", "node": "D", "pressure": 3e5}
    return CircuitEquations(circuit({**PILOTED, **fields}, other))


def test_pilots_take_no_oil_and_ports_may_be_left_out() -> None:
    capacity = 1e-4 * ((1.0 + (3e6 - 101325.0) / 1.5e8) / 1.5e9 + 1.0 / 1.5e8)
    for fields, flow in (
        ({}, 3e6 * 2.9e6),
        ({"drain": "D"}, 3e6 * (2.9e6 + 2.7e6)),
        ({"shield": "D"}, 2.7e6 * 2.9e6),
        ({"shield": "D", "drain": "D"}, 2.7e6 * (2.9e6 + 2.7e6)),
    ):
        equations = piloted(**fields)
        parameters = np.array([each.start for each in equations.parameters])
        rates = equations.rates(np.array([3e6]), np.zeros(0), parameters)
        assert rates == pytest.approx([-1e-18 * flow / capacity], rel=1e-13), fields


def test_parameters_that_are_left_out_are_none_of_the_equations() -> None:
    assert "leak.lag" not in [each.name for each in piloted().parameters]
    equations = piloted(lag=0.5)
    (lag,) = (each for each in equations.parameters if each.name == "leak.lag")
    assert (lag.start, lag.minimum) == (0.5, pytest.approx(1e-12))
    parameters = np.array([each.start for each in equations.parameters])
    rates = equations.rates(np.array([3e6, 1e6]), np.zeros(0), parameters)
    assert rates[1] == pytest.approx((3e6 - 1e6) / 0.5, rel=1e-14)
    refused(lambda: piloted(lag=0.0), "lag is 0.0; it must be greater than 0")


class Gauge(Component):
    """A gauge: it reads a pressure, and nothing flows through it."""

    type: Literal["test-gauge"] = "test-gauge"
    node: SensedPort

    def outputs(self) -> tuple[Quantity, ...]:
        return (Quantity("bar", "1", shared=True),)

    def evaluate_outputs(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"bar": now.pressure("node") / 1e5}


def test_gauge_reads_a_pressure() -> None:
    gauges = ({"type": "test-gauge", "name": f"gauge_{node}", "node": node} for node in "AT")
    equations = CircuitEquations(circuit(*gauges))
    parameters = np.array([each.start for each in equations.parameters])
    told = equations.evaluate_outputs(np.array([3e6]), np.zeros(0), parameters)
    read = {each.name: value for each, value in zip(equations.outputs, told, strict=True)}
    assert (read["gauge_A.bar"], read["gauge_T.bar"]) == pytest.approx((30.0, 1.0), rel=1e-14)
    assert equations.rates(np.array([3e6]), np.zeros(0), parameters) == pytest.approx([0.0], abs=0.0)


def test_pilots_without_a_volume_are_refused() -> None:
    refused(lambda: piloted(pilot="X"), "node 'X' of test-piloted 'leak' has no volume")
    refused(lambda: piloted(drain="T"), "test-piloted 'leak' has two ports at the same node")


@pytest.mark.parametrize("fields", [{}, {"lag": 0.5, "drain": "D"}])
def test_what_is_left_out_is_left_out_of_traced_equations(fields: dict[str, Any]) -> None:
    equations = circuit({**PILOTED, **fields}, {"type": "tank", "name": "other", "node": "D"})
    simulation = CoupledModel(name="piloted", systems={"circuit": equations}).simulation(compiled=False)
    result = simulation.run(0.01)
    assert 1e5 < result["A.pressure"][-1] < 2e6


# -- answers ------------------------------------------------------------------------------------------------


class Answering(Component):
    """A component whose functions give what a test says."""

    type: Literal["test-answering"] = "test-answering"
    inlet: Port
    outlet: Port
    case: str

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("x", "m", 0.0, description="of no meaning"),)

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        number = {"unknown number": "bore"}.get(self.case, "x")
        port = {"unknown port": "outlt"}.get(self.case, "outlet")
        if self.case == "inflow":
            return (Flow(now.inflow("inlet"), "inlet", "outlet"),)
        return (Flow(now[number], "inlet", port),)

    def rates(self, now: ComponentContext) -> Mapping[str, Any]:
        rates = {"missing rate": {}, "odd rate": {"x": now["x"], "y": 1.0}, "many": {"x": np.stack([now["x"]] * 2)}}
        return rates.get(self.case, {"x": now.pressure("inlt" if self.case == "unknown pressure" else "inlet")})


@pytest.mark.parametrize(
    ("case", "sentence"),
    [
        ("missing rate", "test-answering 'part': rates gives nothing; it must give x"),
        ("odd rate", "test-answering 'part': rates gives x, y; it must give x"),
        ("many", "test-answering 'part': rates gives an array of shape (2,) as 'x'; it must be one number"),
        ("unknown number", "test-answering 'part' has no number 'bore' here; there are x"),
        ("unknown port", "test-answering 'part': flows names a port 'outlt'; did you mean 'outlet'?"),
        ("unknown pressure", "test-answering 'part' has no port 'inlt'; did you mean 'inlet'?"),
        ("inflow", "test-answering 'part' asks for the inflow at 'inlet', which outputs alone may depend on"),
    ],
)
def test_answers_that_do_not_fit_are_refused(case: str, sentence: str) -> None:
    equations = CircuitEquations(circuit(Answering(name="part", inlet="A", outlet="T", case=case)))
    parameters = np.array([each.start for each in equations.parameters])
    with pytest.raises(DataError) as caught:
        equations.rates(np.array([1e6, 0.0]), np.zeros(0), parameters)
    assert str(caught.value) == sentence


class Driven(Component):
    """A source whose pressure is an input."""

    type: Literal["test-driven"] = "test-driven"
    node: HeldPort

    def inputs(self) -> tuple[Quantity, ...]:
        return (Quantity("pressure", "Pa", 1e6),)

    def held_pressures(self, now: ComponentContext) -> Mapping[str, Array]:
        return {"node": now["pressure"]}


class Prepared(Leak):
    """A leak that begins as the pressure at the start says."""

    type: Literal["test-prepared"] = "test-prepared"

    def initial_states(self, now: ComponentContext) -> Mapping[str, Array | float]:
        return {"wear": now.pressure("inlet") / 1e6}


def test_source_may_be_driven() -> None:
    equations = CircuitEquations(circuit({"type": "test-driven", "name": "pump", "node": "P"}, {**LEAK, "outlet": "P"}))
    parameters = np.array([each.start for each in equations.parameters])
    outputs = [each.name for each in equations.outputs]
    for pressure in (1e6, 5e6):
        told = equations.evaluate_outputs(np.array([3e6, 1.0]), np.array([pressure, 0.0]), parameters)
        assert told[outputs.index("leak.flow")] == pytest.approx(1e-11 * (3e6 - pressure), rel=1e-14)


def test_states_begin_by_what_is_known_at_the_start() -> None:
    held = {**LEAK, "type": "test-prepared", "inlet": "T", "outlet": "A"}
    equations = CircuitEquations(circuit(held))
    parameters = np.array([each.start for each in equations.parameters])
    assert equations.initial_states(parameters) == pytest.approx([2e6, 0.1])
    driven = circuit({"type": "test-driven", "name": "pump", "node": "P"}, {**held, "inlet": "P"})
    equations = CircuitEquations(driven)
    parameters = np.array([each.start for each in equations.parameters])
    refused(
        lambda: equations.initial_states(parameters),
        "test-driven 'pump': 'pressure' is not known where states at the start are worked out",
    )


class Doubled(Leak):
    """A leak one of whose states has the name of a parameter."""

    type: Literal["test-doubled"] = "test-doubled"

    def states(self) -> tuple[Quantity, ...]:
        return (Quantity("growth", "1", 1.0),)


def test_names_of_a_component_are_distinct() -> None:
    refused(
        lambda: Doubled(name="leak", inlet="A", outlet="T", conductance=1.0),
        "Doubled 'leak': the name 'growth' is given to more than one of its numbers",
    )
