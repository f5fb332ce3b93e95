"""Start values of joints that close loops, which have no coordinates: the loops decide where these joints start."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mbsfmu.equations.joint_coordinates import coordinate_at
from mbsfmu.equations.loads import MotionState
from mbsfmu.initialization.changed_start import CHANGED, MOVED, ROUND_OFF
from mbsfmu.model.mechanism import Mechanism
from mbsfmu.modelling import DataError
from mbsfmu.systems.mechanism.mechanism_parts import MechanismParts
from mbsfmu.tracing.workspace import Floats


def unused_starts(
    mechanism: Mechanism, parts: MechanismParts, motion: MotionState, parameters: Floats, arm: float
) -> Iterator[str]:
    """Yield a clause on each start value of a joint that closes a loop, where it starts elsewhere.

    Defaults are not given, as for other joints. Rates of joints that turn freely are not compared: those of their
    Cardan angles are not the angular velocity that is given.

    Parameters
    ----------
    mechanism
        The mechanism.
    parts
        Its equations.
    motion
        Of its bodies at the start.
    parameters
        Of the mechanism.
    arm
        A length in m that distances are measured by.
    """
    fastest = max((abs(rate) for rate in motion.velocities.tolist()), default=0.0)
    for joint in parts.topology.cuts:
        each = zip(joint.coordinate_names, joint.elements, joint.written_starts, strict=True)
        for name, element, (placed, moved) in each:
            if not placed and not moved:
                continue
            of, unit = f"{joint.name}.{name}", "m" if element.slides else "rad"
            try:
                found = coordinate_at(mechanism, parts.points, of).motion(motion, parameters)
            except DataError:  # a coordinate that cannot be measured
                continue
            place, rate = float(found.coordinate), float(found.rate)
            away = place - element.start
            away = abs(away) if element.slides else abs(math.remainder(away, 2.0 * math.pi))
            if placed and away > (MOVED * arm if element.slides else MOVED):
                yield f"{of} starts at {place:.6g} instead of {element.start:.6g} {unit}"
            least = max(CHANGED * max(fastest, abs(element.start_rate)), ROUND_OFF)
            if moved and not joint.turns_freely and abs(rate - element.start_rate) > least:
                yield f"the rate of {of} starts at {rate:.6g} instead of {element.start_rate:.6g} {unit}/s"
