"""Saved coupled runs: what changes from step to step, and the call that identifies them.

What changes from step to step in coupled runs, so that another process can go on from there.

What an object changes from one communication point to the next stands by name in the `CHANGES` of its class; all else
follows from the call and the FMUs. `mbsfmu.io.checkpoints` writes it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError
from mbsfmu.cosim.coupling.graph import SystemGraph
from mbsfmu.cosim.coupling.sweeps import names_of
from mbsfmu.cosim.fmus.fmu_instance import Instance
from mbsfmu.cosim.runs.coupling_options import CouplingOptions
from mbsfmu.cosim.runs.scenario import Table
from mbsfmu.modelling import Data


def changes_of(thing: Any) -> dict[str, Any]:
    """Return the changes of an object since its start, by the names in `CHANGES`; arrays are copied."""
    return {name: _taken(getattr(thing, name)) for name in type(thing).CHANGES}


def put_back(thing: Any, changes: Mapping[str, Any]) -> None:
    """Let an object be as it was when its changes were taken; arrays keep their place."""
    for name in type(thing).CHANGES:
        now, then = getattr(thing, name), changes[name]
        if hasattr(type(now), "CHANGES"):
            put_back(now, then)
        elif isinstance(now, np.ndarray) and isinstance(then, np.ndarray) and now.shape == then.shape:
            now[...] = then
        else:
            setattr(thing, name, tuple(then) if isinstance(then, list) and isinstance(now, tuple) else then)


def _taken(value: Any) -> Any:
    if hasattr(type(value), "CHANGES"):
        return changes_of(value)
    return value.copy() if isinstance(value, np.ndarray) else value


def identity_of(file: Path) -> str:
    """Return the identity of a file."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


_MAY_DIFFER = ("stop", "step", "isolate", "place", "scheduler", "time_limit", "threads", "pace", "start_time")


def call_in_words(
    options: CouplingOptions,
    graph: SystemGraph,
    step: float,
    stop: float,
    values: Mapping[tuple[str, str], Any],
    followed: Mapping[tuple[str, str], Any],
    scenario: Table,
) -> dict[str, str]:
    """Return the identity of a call: its FMUs, their coupling, and inputs.

    Parameters
    ----------
    options, graph, step
        How and what is coupled, and the communication step in s.
    stop
        Stop time in s, which FMUs keep in their states.
    values
        Start values that were given.
    followed
        Signals that inputs follow; functions are not looked at.
    scenario
        Values by times in s.
    """
    files = {file: identity_of(file) for file in {*graph.units.values()}}
    signals = {".".join(each): signal.to_dict() for each, signal in followed.items() if isinstance(signal, Data)}
    table = {repr(time): {name: str(value) for name, value in values.items()} for time, values in scenario.items()}
    return {
        **{f"the {options.known()[name].words(name)}": str(value) for name, value in options.content(*_MAY_DIFFER)},
        "the step": f"{step!r} s",
        "the start time": f"{graph.start!r} s",
        "the stop time": f"{stop!r} s",
        "the connections": ", ".join(sorted(str(each) for each in graph.connections)) or "none",
        "the joints": ", ".join(sorted(repr(each) for each in graph.joints)) or "none",
        "the values": ", ".join(sorted(f"{unit}.{name}={value}" for (unit, name), value in values.items())) or "none",
        "signals for": ", ".join(sorted(".".join(each) for each in followed)) or "none",
        "the signals": _hashed(signals),
        "the scenario": _hashed(table),
        **{f"the file of {name}": files[file][:12] for name, file in graph.units.items()},
    }


def _hashed(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def all_changes(instances: Mapping[str, Instance], changing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states of FMUs with where they are, and what has changed of other things, by their names.

    Raises
    ------
    InputError
        When an FMU cannot save its state for another process.
    FmuError
        When one refuses.
    """
    check_serialization(instances)
    units = {name: [instance.serialize(), instance.time, instance.steps] for name, instance in instances.items()}
    return {"units": units, **{name: changes_of(each) for name, each in changing.items()}}


def put_all_back(instances: Mapping[str, Instance], changing: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Restore FMUs and other objects; errors as for `all_changes`."""
    check_serialization(instances)
    for name, (state, time, steps) in content["units"].items():
        instances[name].deserialize(state)
        instances[name].time, instances[name].steps = time, steps
    for name, each in changing.items():
        put_back(each, content[name])


def check_serialization(instances: Mapping[str, Instance]) -> None:
    """Check that all FMUs can save their states for another process.

    Raises
    ------
    InputError
        When one cannot; the sentence names it.
    """
    without = [name for name, instance in instances.items() if not instance.serializes_state]
    if without:
        raise InputError(f"{names_of(without)} cannot save the state for another process; the run cannot be saved")
