"""Power bonds between members, and the energies that they exchange."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mbsfmu.base.errors import InputError
from mbsfmu.base.name_patterns import names_between_commas
from mbsfmu.cosim.coupling.coupling_data import CoupledInstance, CouplingData
from mbsfmu.cosim.coupling.graph import Connection
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Floats, Instance
from mbsfmu.modelling.measurement_units import IDENTITY

_EFFORTS = ("N", "N.m", "Pa")
_POWERS = ({"N", "m/s"}, {"N.m", "rad/s"}, {"Pa", "m3/s"})


@dataclass(frozen=True)
class BondSide:
    """A member that takes one variable of a bond and gives the other one."""

    member: CoupledInstance
    entry: int
    output: int


class PowerBond:
    """Two variables whose product is a power, exchanged in opposite directions.

    Over a step, a member works with its own output y(t) and with the input u that it was given; the power that
    it sees is u·y. What one member gives is what the other one takes only if inputs equal the other one's
    outputs; the difference is the residual energy of the bond. It is integrated with the mean of u over the
    step and the trapezoidal rule for y.

    Parameters
    ----------
    name
        Name of the bond.
    giver, taker
        Both sides; positive residual energy was brought in by the coupling, as seen by the taker.
    """

    def __init__(self, name: str, giver: BondSide, taker: BondSide) -> None:
        self.name = name
        self.giver, self.taker = giver, taker

    def exchanged(self, before: Floats, after: Floats, step: float) -> tuple[float, float]:
        """Return the energies received and given in the last step in s, in J, from all outputs around it."""
        taker, giver = self.taker, self.giver
        half = 0.5 * step
        got = taker.member.mean_of(taker.entry) * (before.item(taker.output) + after.item(taker.output))
        given = giver.member.mean_of(giver.entry) * (before.item(giver.output) + after.item(giver.output))
        return half * got, half * given

    def missed(self, true: Floats) -> tuple[float, float]:
        """Return the errors of the means of effort and flow in the last step."""
        taker, giver = self.taker, self.giver
        return (
            taker.member.mean_of(taker.entry) - true.item(giver.output),
            giver.member.mean_of(giver.entry) - true.item(taker.output),
        )

    def factors(self, outputs: Floats) -> tuple[float, float]:
        """Return effort and flow among outputs."""
        return outputs.item(self.giver.output), outputs.item(self.taker.output)


def find_bonds(
    exchange: CouplingData,
    connections: Sequence[Connection],
    declared: Sequence[str] = (),
    warn: Callable[[str], None] = lambda _: None,
) -> list[PowerBond]:
    """Return the power bonds: pairs of connections between two instances whose product is a power, and declared ones.

    Force and velocity, torque and angular velocity, pressure and flow count. Where several pairs are possible
    between two instances, variables of the same component (`cylinder.force`, `cylinder.velocity`) make a bond. A bond
    has the name of the component that gives the effort; bonds of one name have their FMUs too, then both outputs,
    and the inputs that these go to.

    Parameters
    ----------
    exchange, connections
        The members, and what connects them.
    declared
        `a.effort,b.flow`: outputs that go to each other's unit and whose product is a power in W, whatever units they
        have.
    warn
        Takes a sentence on several efforts and several flows of one component, which make no bond: any two may belong
        together.

    Raises
    ------
    InputError
        When something declared reads otherwise, or no connections belong to it.
    """
    instances = {member.instance.name: member.instance for member in exchange.members}
    pairs = list[tuple[Connection, Connection]]()
    for text in declared:
        pair = _declared(text, connections, instances)
        if not {pair, pair[::-1]}.intersection(pairs):
            pairs.append(pair)
    taken = {each for pair in pairs for each in pair}
    found = [
        (effort, flow)
        for effort in connections
        for flow in connections
        if not {effort, flow} & taken and _is_bond(effort, flow, instances)
    ]
    counts = Counter(each for pair in found for each in pair)
    unclear = [pair for pair in found if min(counts[each] for each in pair) > 1]
    if unclear:
        efforts = dict.fromkeys(".".join(effort.source) for effort, _ in unclear)
        flows = dict.fromkeys(".".join(flow.source) for _, flow in unclear)
        warn(
            f"which of {names_of(list(flows))} makes a power with which of {names_of(list(efforts))} is not certain: "
            "none is taken as a power bond; --bond (bonds) declares them"
        )
    pairs += [pair for pair in found if pair not in unclear]
    return [
        PowerBond(
            name,
            _side(exchange, exchange.member(effort.source[0]), flow, effort),
            _side(exchange, exchange.member(effort.target[0]), effort, flow),
        )
        for name, (effort, flow) in zip(_names(pairs), pairs, strict=True)
    ]


def _is_bond(effort: Connection, flow: Connection, instances: Mapping[str, Instance]) -> bool:
    """Return whether two connections are effort and flow of one component, by units and names."""
    if effort.transformation != IDENTITY or flow.transformation != IDENTITY:
        return False  # what one side gives is not what the other one takes: a gear, or another FMU
    if not _are_opposite(effort, flow) or _component(effort.source[1]) != _component(flow.target[1]):
        return False
    given = instances[effort.source[0]].variables[effort.source[1]].unit
    returned = instances[flow.source[0]].variables[flow.source[1]].unit
    return given in _EFFORTS and {given, returned} in _POWERS


def _names(pairs: Sequence[tuple[Connection, Connection]]) -> list[str]:
    """Return a name for each bond, no two of them alike."""
    forms = [
        (
            _component(effort.source[1]) or effort.source[1],
            f"{effort.source[0]}.{_component(effort.source[1]) or effort.source[1]}",
            f"{'.'.join(effort.source)},{'.'.join(flow.source)}",
            f"{'.'.join(effort.source)}={'.'.join(effort.target)},{'.'.join(flow.source)}={'.'.join(flow.target)}",
        )
        for effort, flow in pairs
    ]
    names = [each[0] for each in forms]
    for form in (1, 2, 3):
        counts = Counter(names)
        names = [each[form] if counts[name] > 1 else name for name, each in zip(names, forms, strict=True)]
    return names


def _component(variable: str) -> str:
    return variable.rpartition(".")[0]


def _are_opposite(effort: Connection, flow: Connection) -> bool:
    return effort.source[0] == flow.target[0] and effort.target[0] == flow.source[0]


def _declared(
    text: str, connections: Sequence[Connection], instances: Mapping[str, Instance]
) -> tuple[Connection, Connection]:
    """Return the connections of a bond that is declared as `a.effort,b.flow`."""
    ends = [each.partition(".") for each in names_between_commas(text)]
    if len(ends) != 2 or not all(unit and variable for unit, _, variable in ends):
        raise InputError(f"the bond '{text}' is refused: it must read a.effort,b.flow")
    named = [
        (unit, instances[unit].known_name(variable) if unit in instances else variable) for unit, _, variable in ends
    ]
    efforts, flows = ([each for each in connections if each.source == end] for end in named)
    found = [(effort, flow) for effort in efforts for flow in flows if _are_opposite(effort, flow)]
    if not found:
        raise InputError(
            f"the bond '{text}' is refused: a connection must go from each of the two outputs to the FMU of the other"
        )
    return found[0]


def _side(exchange: CouplingData, member: CoupledInstance, taken: Connection, given: Connection) -> BondSide:
    return BondSide(member, member.entries.names.index(taken.target[1]), exchange.names.index(given.source))
