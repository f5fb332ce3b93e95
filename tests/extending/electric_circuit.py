"""Electric circuits with nodes: a user's own kind of systems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from mbsfmu.model.system_kinds import FLUID, FORCE, ModelConnections, Stroke, SystemData
from mbsfmu.modelling import Array, Data, DataError, Name, Parameter, Positive, Quantity, parameters_of
from mbsfmu.modelling.variables import Causality
from mbsfmu.systems.part_variables import MotionlessSystem, part_variable
from mbsfmu.systems.system import SystemContext, started, starting

GROUND = "ground"


class Branch(Data):
    """What joins two nodes; its current flows from the first to the second."""

    name: Name
    nodes: tuple[Name, Name]


class Resistor(Branch):
    resistance: Annotated[Positive, Parameter("V/A", "resistance")]


class Inductor(Branch):
    inductance: Annotated[Positive, Parameter("V.s/A", "inductance")]


class DcMotor(Branch):
    """A winding u = R i + L di/dt + k ω with the torque k i; `constant` is k in N m/A."""

    resistance: Annotated[Positive, Parameter("V/A", "resistance of the winding")]
    inductance: Annotated[Positive, Parameter("V.s/A", "inductance of the winding")]
    constant: Annotated[Positive, Parameter("N.m/A", "torque per current")]


class VoltageSource(Data):
    """Holds a node at a voltage against the ground, which is an input."""

    name: Name
    node: Name
    voltage: float = 0.0


class ElectricCircuit(SystemData):
    """Resistors, inductors, motors and sources that are joined at nodes."""

    type: Literal["electric-circuit"] = "electric-circuit"
    sources: tuple[VoltageSource, ...] = ()
    resistors: tuple[Resistor, ...] = ()
    inductors: tuple[Inductor, ...] = ()
    motors: tuple[DcMotor, ...] = ()

    @property
    def windings(self) -> tuple[Branch, ...]:
        """What has a current as a state."""
        return (*self.inductors, *self.motors)

    @property
    def held(self) -> tuple[str, ...]:
        """Nodes of sources."""
        return tuple(each.node for each in self.sources)

    @property
    def free(self) -> tuple[str, ...]:
        """Nodes whose voltage follows from the currents there."""
        every = (node for each in (*self.resistors, *self.windings) for node in each.nodes)
        return tuple(node for node in dict.fromkeys(every) if node not in (GROUND, *self.held))

    @model_validator(mode="after")
    def _is_determined(self) -> Self:
        known, before = {GROUND, *self.held}, -1
        while len(known) > before:
            before = len(known)
            known |= {node for each in self.resistors if known & set(each.nodes) for node in each.nodes}
        for node in self.free:
            if node not in known:
                raise DataError(f"node '{node}' is joined to no source and no ground by resistors; add one")
        return self

    def make_system(self, name: str, start_values: dict[str, float]) -> ElectricSystem:
        return ElectricSystem(self, name, start_values)

    def topology(self) -> dict[str, Any]:
        """Each node with the branches at it, and whether a source holds its voltage."""
        branches = (*self.resistors, *self.windings)
        return {
            "nodes": {
                node: {
                    "voltage": "held" if node in self.held else "follows",
                    "branches": [each.name for each in branches if node in each.nodes],
                }
                for node in (*self.held, *self.free)
            }
        }

    def icon(self) -> Iterator[Stroke]:
        """A row of nodes above the ground, with a line for each branch."""
        places = {node: (float(index), 1.0) for index, node in enumerate((*self.held, *self.free))}
        for each in (*self.resistors, *self.windings):
            begin, end = (
                (places[other][0], 0.0) if node == GROUND else places[node]
                for node, other in (each.nodes, each.nodes[::-1])
            )
            yield Stroke(begin, end, 9.0, FORCE if each in self.motors else FLUID)

    def check_connections(self, name: str, given: ModelConnections) -> None:
        """A motor whose torque turns something has its speed from there."""
        sources = {source for source, _ in given.connections}
        for each in self.motors:
            torque, speed = f"{name}.{each.name}.torque", f"{name}.{each.name}.angular_velocity"
            if torque in sources and speed not in given.driven:
                raise DataError(f"nothing drives '{speed}', though motor '{name}.{each.name}' turns something")

    def diagnostics(self) -> Iterator[str]:
        for each in self.resistors:
            if each.resistance > 1e12:
                yield f"resistor '{each.name}' has {each.resistance:g} Ohm, more than insulators"


class ElectricSystem(MotionlessSystem):
    """Currents of windings are states; voltages of nodes follow from Kirchhoff's law of currents."""

    def __init__(self, circuit: ElectricCircuit, name: str, start_values: dict[str, float]) -> None:
        self.name, self._circuit, self._given = name, circuit, start_values
        branches = (*circuit.resistors, *circuit.windings)
        parameters = [each for branch in branches for each in parameters_of(branch, branch.name)]
        self._place = {each.name: index for index, each in enumerate(parameters)}
        currents = (Quantity(f"{each.name}.current", "A", 0.0, nominal=1.0) for each in circuit.windings)
        inputs = [Quantity(f"{each.name}.voltage", "V", each.voltage) for each in circuit.sources]
        inputs += [Quantity(f"{each.name}.angular_velocity", "rad/s", 0.0) for each in circuit.motors]
        outputs = [Quantity(f"{each.name}.torque", "N.m", shared=True) for each in circuit.motors]
        outputs += [Quantity(f"{each}.voltage", "V", shared=True) for each in circuit.free]
        self.states = tuple(part_variable(each, Causality.LOCAL) for each in currents)
        self.inputs = starting((part_variable(each, Causality.INPUT) for each in inputs), start_values)
        self.parameters = starting((part_variable(each, Causality.PARAMETER) for each in parameters), start_values)
        self.outputs = tuple(part_variable(each, Causality.OUTPUT) for each in outputs)

    def initial_states(self, parameters: Array) -> Array:
        return started(np.zeros(len(self.states)), self.states, self._given)

    def rates(self, instant: SystemContext) -> Array:
        voltages, speeds = self._voltages(instant), instant.inputs[len(self._circuit.sources) :]
        rates = []
        for index, each in enumerate(self._circuit.windings):
            drop = voltages[each.nodes[0]] - voltages[each.nodes[1]]
            if isinstance(each, DcMotor):
                speed = speeds[index - len(self._circuit.inductors)]
                resistance, constant = (self._number(instant, each, field) for field in ("resistance", "constant"))
                drop = drop - resistance * instant.states[index] - constant * speed
            rates.append(drop / self._number(instant, each, "inductance"))
        return np.stack(rates) if rates else np.zeros(0)

    def evaluate_outputs(self, instant: SystemContext) -> Array:
        voltages, first = self._voltages(instant), len(self._circuit.inductors)
        outputs = [
            self._number(instant, each, "constant") * instant.states[first + index]
            for index, each in enumerate(self._circuit.motors)
        ]
        outputs += [voltages[node] for node in self._circuit.free]
        return np.stack(outputs) if outputs else np.zeros(0)

    def _number(self, instant: SystemContext, part: Branch, field: str) -> Any:
        return instant.parameters[self._place[f"{part.name}.{field}"]]

    def _voltages(self, instant: SystemContext) -> dict[str, Any]:
        """Return the voltage of each node in V: Σ currents = 0 at free nodes, by elimination."""
        circuit, free = self._circuit, self._circuit.free
        known: dict[str, Any] = {each.node: instant.inputs[k] for k, each in enumerate(circuit.sources)}
        known[GROUND] = 0.0
        rows: list[list[Any]] = [[0.0] * (len(free) + 1) for _ in free]
        for each in circuit.resistors:
            conductance = 1.0 / self._number(instant, each, "resistance")
            for node, other in (each.nodes, each.nodes[::-1]):
                if node in free:
                    row = rows[free.index(node)]
                    row[free.index(node)] = row[free.index(node)] + conductance
                    column = free.index(other) if other in free else -1
                    row[column] = row[column] + (-conductance if other in free else conductance * known[other])
        for current, each in enumerate(circuit.windings):
            for node, sign in zip(each.nodes, (-1.0, 1.0), strict=True):
                if node in free:
                    row = rows[free.index(node)]
                    row[-1] = row[-1] + sign * instant.states[current]
        for k in range(len(free)):  # without pivots: conductances are dominant on the diagonal
            for below in range(k + 1, len(free)):
                factor = rows[below][k] / rows[k][k]
                rows[below] = [one - factor * other for one, other in zip(rows[below], rows[k], strict=True)]
        for k in reversed(range(len(free))):
            rest = sum(rows[k][j] * known[free[j]] for j in range(k + 1, len(free)))
            known[free[k]] = (rows[k][-1] - rest) / rows[k][k]
        return known
