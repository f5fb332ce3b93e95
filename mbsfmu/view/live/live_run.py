"""A coupled run in a thread, at real time: what a page may ask of it, and what it shows of FMUs and bodies."""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
import time as clock
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbsfmu.base.archives import scratch
from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.cosim.fmus.fmu_instance import REMARK, Instance, Port, message_parts
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.run_recorder import CosimulationInterrupted
from mbsfmu.io.trajectory import Trajectory
from mbsfmu.modelling import DataError
from mbsfmu.modelling.variables import Causality, Variability, Variable
from mbsfmu.view.circuit.circuit_diagram import circuit_diagrams
from mbsfmu.view.scene.payload import Uncoloured, motion, placements_of, pressure_sources
from mbsfmu.view.scene.poses import Placement, Recorded

_PLOTTED, _PANELS = 4, 2
"""Outputs of a unit that are plotted at first, and units."""
_OF_RUNS = "solver."
"""Beginning of the names of settings of our FMUs, which no page changes."""


@dataclass(frozen=True)
class LiveVariables:
    """Variables of coupled FMUs, as `unit.variable`, in the form of the page.

    Attributes
    ----------
    inputs
        Inputs that no connection drives, with the range of their sliders.
    parameters
        Tunable parameters, and fixed ones that count from the next reset on.
    signals
        Continuous variables that are computed.
    plotted
        Names of the signals that are plotted at first.
    order
        Places of the signals among the values of the ports.
    """

    inputs: list[dict[str, Any]]
    parameters: list[dict[str, Any]]
    signals: list[dict[str, Any]]
    plotted: list[str]
    order: NDArray[np.intp]

    @classmethod
    def of(cls, run: Cosimulation) -> LiveVariables:
        """Return the variables of a run at its start."""
        taken = {each.target for each in run.coupling.connections}
        inputs = [
            {**described(run, unit, each), **_range(each, float(run[f"{unit.name}.{each.name}"]))}
            for unit, each in _of(run, Causality.INPUT)
            if (unit.name, each.name) not in taken
        ]
        parameters = [
            {**described(run, unit, each), "fixed": each.variability is not Variability.TUNABLE}
            for unit, each in _of(run, Causality.PARAMETER)
            if not each.name.startswith(_OF_RUNS)
        ]
        signals = [
            {**described(run, unit, each), "most": abs(each.nominal or 0.0)}
            for causality in (Causality.OUTPUT, Causality.LOCAL)
            for unit, each in _of(run, causality)
            if each.variability is Variability.CONTINUOUS
        ]
        for group in (inputs, parameters, signals):
            for place, each in enumerate(group):
                each["reference"] = place
        units = [unit.name for unit in _instances(run)]
        read = sorted(range(len(signals)), key=lambda place: units.index(signals[place]["unit_name"]))
        return cls(inputs, parameters, signals, _plotted(run, signals), np.argsort(read))

    def ports(self, run: Cosimulation) -> list[Port]:
        """Return the ports of a run that give the signals, one for each FMU that has some."""
        found = []
        for unit in _instances(run):
            names = [each["variable"] for each in self.signals if each["unit_name"] == unit.name]
            if names:
                found.append(unit.port(names))
        return found


def described(run: Cosimulation, unit: Instance, variable: Variable) -> dict[str, Any]:
    """Return a variable as the page shows it."""
    name = f"{unit.name}.{variable.name}"
    return {
        "name": name,
        "unit_name": unit.name,
        "variable": variable.name,
        "unit": unit.units[variable.name].name or "1",
        "start": float(run[name]) if variable.settable else 0.0,
        "least": variable.minimum,
        "greatest": variable.maximum,
        "description": variable.description,
    }


def _instances(run: Cosimulation) -> list[Instance]:
    return list({member.instance.name: member.instance for member in run.coupling.members}.values())


def _of(run: Cosimulation, causality: Causality) -> Iterator[tuple[Instance, Variable]]:
    """Yield the numbers of a causality with their FMUs; inputs and parameters once, whatever names they have."""
    written = causality in (Causality.INPUT, Causality.PARAMETER)
    for unit in _instances(run):
        for name, each in unit.variables.items():
            if each.causality is causality and not (written and name in unit.aliases) and unit.kinds[name] == "Real":
                yield unit, each


def _range(variable: Variable, start: float) -> dict[str, float]:
    """Return between which values the slider of an input goes: its bounds, or twice its start, or its nominal value."""
    size = 2.0 * abs(start) or variable.nominal or 1.0
    low = -size if variable.minimum is None else variable.minimum
    high = size if variable.maximum is None else variable.maximum
    return {"from": min(low, start), "to": max(high, start)}


def _plotted(run: Cosimulation, signals: list[dict[str, Any]]) -> list[str]:
    """Return the first outputs of the first units of measurement."""
    outputs = {f"{unit.name}.{each.name}" for unit, each in _of(run, Causality.OUTPUT)}
    found: dict[str, list[str]] = {}
    for each in signals:
        if each["name"] in outputs:
            found.setdefault(each["unit"], []).append(each["name"])
    return [name for names in list(found.values())[:_PANELS] for name in names[:_PLOTTED]]


_PLAIN = ("nothing", "pause", "step", "start", "reset")
_LONGEST = 60  # characters of what is quoted


def request_of(text: str) -> dict[str, Any]:
    """Return a message of a page as data.

    Raises
    ------
    InputError
        When it is no JSON object.
    """
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the page sends what is no JSON: {error}") from None
    if not isinstance(message, dict):
        raise InputError(f"the page sends {_quoted(message)}; a request is a JSON object")
    return message


def checked_request(message: dict[str, Any], variables: LiveVariables, saved: Collection[int]) -> dict[str, Any]:
    """Return a request that a run can do.

    Parameters
    ----------
    message
        `do` says what; the other fields depend on it.
    variables
        Those of the run.
    saved
        The numbers of states that were saved.

    Raises
    ------
    InputError
        When it is none: a field is missing, or is no number, or none of those that there are.
    """
    what = message.get("do")
    match what:
        case "run":
            speed = message.get("speed")  # none: as fast as it goes
            if speed is not None and not _number(message, "speed") > 0.0:
                raise InputError(f"the speed is {speed}; it must be above zero")
        case "input":
            _place(message, "index", len(variables.inputs), "input")
            _number(message, "value")
        case "parameter":
            _place(message, "reference", len(variables.parameters), "parameter")
            _number(message, "value")
        case "signals":
            _check_signals(message.get("references"), len(variables.signals))
        case "save":
            _whole(message, "id")
        case "restore":
            if _whole(message, "id") not in saved:
                raise InputError(f"there is no saved state {message['id']}; there are {len(saved)}")
        case "record":
            _text(message, "for")  # what the page does with it, which it is told again
        case _ if what not in _PLAIN:
            raise InputError(f"the page asks for {_quoted(what)}, which a run cannot do")
    return message


def _number(message: dict[str, Any], name: str) -> float:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"the {name} is {_quoted(value)}; it must be a finite number")
    return float(value)


def _text(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise InputError(f"'{name}' is {_quoted(value)}; it must be a text")
    return value


def _whole(message: dict[str, Any], name: str) -> int:
    value = message.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise InputError(f"the {name} is {_quoted(value)}; it must be a whole number")
    return value


def _place(message: dict[str, Any], name: str, count: int, of: str) -> int:
    place = _whole(message, name)
    if place >= count:
        raise InputError(f"there is no {of} {place}; there are {count}")
    return place


def _check_signals(references: Any, count: int) -> None:
    if not isinstance(references, list):
        raise InputError(f"the page asks for the signals {_quoted(references)}; they are a list of numbers")
    for each in references:
        _place({"reference": each}, "reference", count, "signal")


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


_MOMENT = 1e-3
"""Length in s of the standing motion from which the scene takes shapes and extent."""


class LivePicture:
    """The picture of a run.

    Parameters
    ----------
    placements
        The mechanisms.
    names, units
        Of the signals.
    systems
        Names of the systems of the machine.
    sources
        Where the pressures of nodes come from.
    scene
        What the page draws; None where nothing can be drawn, and `reason` tells why.
    circuits, circuit
        Schematics, and the signals whose indices are their sources.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        names: Sequence[str],
        units: Sequence[str],
        systems: Sequence[str],
        sources: Mapping[str, str | float],
        scene: Mapping[str, Any] | None,
        circuits: Sequence[Mapping[str, Any]] = (),
        circuit: Sequence[str] = (),
        reason: str = "",
    ) -> None:
        self._placements, self._names, self._units, self._systems = placements, list(names), list(units), systems
        self.pressures, self.scene, self.reason = sources, scene, reason
        self.circuits = circuits
        self._circuit = [self._names.index(each) for each in circuit]
        self._nodes = [self._names.index(each) for each in sources.values() if isinstance(each, str)]

    @classmethod
    def of(cls, run: Cosimulation, variables: LiveVariables) -> LivePicture:
        """Return the picture of a run at its start."""
        names = [each["name"] for each in variables.signals]
        units = [each["unit"] for each in variables.signals]
        values = np.concatenate([np.zeros(0), *(port.read() for port in variables.ports(run))])[variables.order]
        try:
            drawable = run.result().drawable
            if drawable is None:
                raise InputError("the run does not know its FMUs")
            machine = drawable.machine()
            begin = run.time
            standing = Trajectory(np.array([begin, begin + _MOMENT]), np.stack([values, values]), names, units)
            scene = {**motion(machine, standing, arrows=False), "notes": []}
            recorded = Recorded(standing, standing.time[:1], machine.systems)
            sources = {
                node: recorded.name(*source) or "" if isinstance(source, tuple) else source
                for node, source in pressure_sources(machine, recorded).items()
                if not isinstance(source, Uncoloured)
            }
            circuit: dict[str, int] = {}

            def read(signal: str) -> dict[str, int]:
                return {"index": circuit.setdefault(signal, len(circuit))}

            circuits = circuit_diagrams(machine, standing, read)
            placements, systems = placements_of(machine), list(machine.systems)
            return cls(placements, names, units, systems, sources, scene, circuits, list(circuit))
        except (InputError, DataError) as error:
            return cls([], names, units, [], {}, None, reason=str(error))

    def at(self, time: float, values: NDArray[np.float64]) -> tuple[list[float] | None, list[float], list[float]]:
        """Return what is seen at a time in s, from the values of all signals.

        Twelve numbers of each body, origin in m and rotation matrix by rows; pressures in bar; values of the circuits.
        """
        if self.scene is None:
            return None, [], []
        now = Trajectory(np.array([time]), values[None], self._names, self._units)
        recorded = Recorded(now, now.time, self._systems)
        numbers: list[float] = []
        for placement in self._placements:
            (frames,) = placement.frames(recorded)
            for origin, rotation in zip(frames.origin, frames.rotation, strict=True):
                numbers += [*np.asarray(origin, dtype=float).tolist(), *np.ravel(rotation).tolist()]
        oil = [float(values[place]) for place in self._circuit]
        return numbers, [float(values[place]) / 1e5 for place in self._nodes], oil


_BUSY = 0.02
"""Seconds of steps before the page is heard again."""
_BEHIND = 0.1
"""Seconds by which a run may be behind before it gives up to catch up."""
_PICTURE = 1.0 / 30.0
"""Seconds between two messages with poses."""
_SAMPLE = 0.01
"""Seconds of the run between values for plots."""
_IDLE = 0.5
"""Seconds that a run that stands waits for the page before it looks whether it is to end."""

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class _Saved:
    """A saved run: its file and time in s, and what the page knows of it."""

    path: Path
    time: float
    recorded: tuple[tuple[float | None, ...], ...]
    inputs: tuple[float | None, ...]
    values: Mapping[str, float]
    made_with: Mapping[str, float]
    changes: tuple[dict[str, float], ...]


class _Remarks(logging.Handler):
    """Tells the page the warnings of a run, and what happened in it, as FMUs of ours say it."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.INFO)
        self._told = tell

    def __enter__(self) -> None:
        logging.getLogger("mbsfmu").addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger("mbsfmu").removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the page a remark."""
        name, category, text = message_parts(record.getMessage())
        if record.levelno == logging.WARNING or category == REMARK:
            is_named = not name or text.startswith(f"{name}: ")
            sentence = text if is_named else f"{name}: {text}"
            self._told({"kind": "log", "sentence": sentence, "remark": True, "run": ""})


class LiveRun:
    """A coupled run that a page drives.

    Parameters
    ----------
    make
        Makes the run from values of fixed parameters by name and the file of a saved run, which may be missing.
    tell
        Takes each message for the page; called from the thread of the run.
    waiting
        Tells whether the page has not taken earlier messages yet: it gets no picture then.

    Attributes
    ----------
    failure
        What has ended the thread of the run, which nothing that a page asks for may do; None while it lives.
    on_failure
        Called from that thread when it ends so.
    """

    failure: BaseException | None = None
    on_failure: Callable[[], None] | None = None

    def __init__(
        self,
        make: Callable[[Mapping[str, float], Path | None], Cosimulation],
        tell: Tell,
        waiting: Callable[[], bool],
    ) -> None:
        self._make, self._tell, self._waiting = make, tell, waiting
        self._asked: queue.Queue[dict[str, Any]] = queue.Queue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="mbsfmu-live", daemon=True)
        self._ready: queue.Queue[tuple[LiveVariables, LivePicture] | BaseException] = queue.Queue()
        self._values: dict[str, float] = {}  # of parameters, as the page has them
        # None of those that the page has not set: they follow signals inside FMUs.
        self._inputs: list[float | None] = []
        self._made_with: dict[str, float] = {}  # parameters and inputs that the present run began with
        self._at_start = False  # whether no step has been made
        self._changed = False  # whether such a run has to begin anew with what the page has set since
        self._speed: float | None = None  # of a run that stands
        self._heard_before: list[dict[str, Any]] = []  # messages that a run hears which begins anew
        self._saved: dict[int, _Saved] = {}

    def start(self) -> tuple[LiveVariables, LivePicture]:
        """Load the FMUs, and return their variables and what is seen of them.

        Raises
        ------
        InputError, SimulationError
            When the run cannot begin.
        """
        self._thread.start()
        found = self._ready.get()
        if isinstance(found, BaseException):
            raise found
        return found

    def ask(self, message: str) -> None:
        """Let the run do what a message of the page says; what is no request is told to the page."""
        try:
            self._asked.put(request_of(message))
        except InputError as error:
            self._refuse(error)

    def pause(self) -> None:
        """Let the run stand."""
        self._asked.put({"do": "pause"})

    def end(self) -> None:
        """End the run and release its FMUs."""
        self._ended.set()
        self._asked.put({"do": "nothing"})
        self._thread.join()

    # -- in the thread --------------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            self._live_on()
        except BaseException as error:
            self.failure = error
            self._ready.put(error)
            if self.on_failure is not None:
                self.on_failure()

    def _live_on(self) -> None:
        remarks = _Remarks(self._tell)
        with scratch() as folder, remarks:
            self._folder = folder
            resume: Path | None = None
            first = True
            while not self._ended.is_set():
                try:
                    again, self._changed = self._changed, False
                    if resume is None:
                        parameters = self._parameters_of(self._made_with) if again else self._values
                        self._made_with = {**parameters, **self._set_inputs()}
                    with self._make(self._made_with, resume) as run:
                        self._begin(run, first=first, resumed=resume is not None, again=again)
                        first = False
                        resume = self._drive()
                except (InputError, SimulationError) as error:
                    if first:
                        self._ready.put(error)
                        return
                    self._fail(str(error), self._time)
                    resume = self._wait_for_reset()

    _time = 0.0

    def _parameters_of(self, values: Mapping[str, float]) -> dict[str, float]:
        names = {each["name"] for each in self.variables.parameters}
        return {name: value for name, value in values.items() if name in names}

    def _set_inputs(self) -> dict[str, float]:
        """Return the inputs that the page has set."""
        values = zip(self._inputs, self.variables.inputs, strict=True) if self._inputs else ()
        return {each["name"]: value for value, each in values if value is not None}

    def _begin(self, run: Cosimulation, *, first: bool, resumed: bool, again: bool) -> None:
        """Take a run at its start, or where it was saved; `again` where the page does not hear of it."""
        self._run = run
        self._speed = self._speed if again else None
        self._failed = False
        self._at_start = not resumed
        self._samples: list[list[float]] = []
        self._sampled = -math.inf
        self._pictured = 0.0
        self._steps = 0
        self._time = run.time
        if first:
            self.variables = LiveVariables.of(run)
            self.picture = LivePicture.of(run, self.variables)
            self._inputs = [None] * len(self.variables.inputs)
            self._chosen: list[int] = []
            self._ready.put((self.variables, self.picture))
        if not resumed:
            self._recorded: list[list[float | None]] = [[run.time, *self._inputs]]
            self._changes: list[dict[str, float]] = []
        self._ports = self.variables.ports(run)
        self._choose(self._chosen)
        if not first and not resumed and not again:
            self._tell({"kind": "restarted"})
        self._show(always=True)

    def _drive(self) -> Path | None:
        """Step and listen until the run is to begin anew; return the saved run that it goes on from, if any."""
        begin: tuple[float, float] | None = None
        while not self._ended.is_set():
            heard = self._heard(wait=self._speed is None)
            while heard:
                if self._changed and heard[0]["do"] in ("step", "save"):
                    self._heard_before = heard
                    return None
                message = heard.pop(0)
                if message["do"] in ("reset", "restore"):
                    self._heard_before = heard
                    return self._restart(message)
                self._do(message)
                begin = None if message["do"] in ("run", "pause") else begin
            if self._speed is None:
                continue
            if self._changed:
                return None
            now = clock.perf_counter()
            begin = begin or (now, self._run.time)
            due = begin[1] + (now - begin[0]) * self._speed
            while self._speed is not None and self._run.time < due and clock.perf_counter() - now < _BUSY:
                self._go_on(min(self._run.time + _SAMPLE, due))
            if self._speed is None:  # it has failed
                continue
            if self._run.time < due - _BEHIND * self._speed:
                begin = None  # a run that cannot keep up does not run after lost time
            self._show()
            ahead = self._run.time - begin[1] - (clock.perf_counter() - begin[0]) * self._speed if begin else 0.0
            if ahead > 0.0 and math.isfinite(self._speed):
                self._ended.wait(min(ahead / self._speed, _BUSY))
        return None

    def _heard(self, *, wait: bool) -> list[dict[str, Any]]:
        """Return what the page has asked for since and can be done; of a run that stands, wait for it."""
        found, self._heard_before = self._heard_before, []
        waits = wait and not found
        while True:
            try:
                message = self._asked.get(timeout=_IDLE) if waits else self._asked.get_nowait()
            except queue.Empty:
                return found
            waits = False
            try:
                found.append(checked_request(message, self.variables, self._saved))
            except InputError as error:
                self._refuse(error)

    def _refuse(self, error: InputError) -> None:
        self._tell({"kind": "log", "sentence": str(error)})

    def _restart(self, message: dict[str, Any]) -> Path | None:
        """Return the file to go on from; none where the run begins at its start."""
        self._changed = False
        if message["do"] == "reset":
            return None
        saved = self._saved[message["id"]]
        self._recorded, self._inputs = [list(row) for row in saved.recorded], list(saved.inputs)
        self._values, self._made_with, self._changes = dict(saved.values), dict(saved.made_with), list(saved.changes)
        places = {each["name"]: each["reference"] for each in self.variables.parameters}
        parameters = [[places[name], value] for name, value in self._values.items()]
        self._tell({"kind": "restored", "time": saved.time, "inputs": self._shown_inputs(), "parameters": parameters})
        return saved.path

    def _wait_for_reset(self) -> Path | None:
        """Wait until a run that could not begin is to begin anew."""
        while not self._ended.is_set():
            heard = self._heard(wait=True)
            while heard:
                message = heard.pop(0)
                if message["do"] in ("reset", "restore"):
                    self._heard_before = heard
                    return self._restart(message)
                if message["do"] == "parameter":
                    self._values[self.variables.parameters[message["reference"]]["name"]] = float(message["value"])
                if message["do"] == "input":
                    self._inputs[int(message["index"])] = float(message["value"])
        return None

    def _do(self, message: dict[str, Any]) -> None:
        """Do one thing that the page asks for."""
        match message["do"]:
            case "run":
                speed = message.get("speed")
                self._speed = None if self._failed else math.inf if speed is None else float(speed)
            case "pause":
                self._speed = None
                self._show(always=True)
            case "step":
                self._speed = None
                self._step()
                self._show(always=True)
            case "start":
                self._tell({"kind": "restarted"})
                self._show(always=True)
            case "input":
                self._set_input(int(message["index"]), float(message["value"]))
            case "parameter":
                self._set_parameter(int(message["reference"]), float(message["value"]))
            case "signals":
                self._choose([int(each) for each in message["references"]])
            case "save":
                self._save(int(message["id"]))
            case "record":
                places = {each["name"]: each["reference"] for each in self.variables.parameters}
                begun = [[places[name], value] for name, value in self._parameters_of(self._made_with).items()]
                told = {"time": self._run.time, "rows": self._recorded, "tuned": self._changes, "begun": begun}
                self._tell({"kind": "record", "for": message["for"], **told})

    def _step(self) -> None:
        self._go_on(None)

    def _go_on(self, until: float | None) -> None:
        """Go on to a time in s, or by one step; samples stand no closer than plots show them."""
        if self._failed:
            return
        try:
            if until is None:
                self._run.step()
            else:
                self._run.run(min(until, self._run.stop))
        except (SimulationError, InputError, CosimulationInterrupted) as error:
            self._fail(str(error), self._run.time)
            return
        self._time = self._run.time
        self._at_start = False
        self._steps += 1
        if self._run.time - self._sampled > _SAMPLE - 1e-9:
            self._sample()

    def _fail(self, sentence: str, time: float) -> None:
        self._failed, self._speed = True, None
        self._tell({"kind": "fault", "sentence": sentence, "time": time})

    def _set_input(self, index: int, value: float) -> None:
        if self._failed:
            self._inputs[index] = value  # the next run begins with it
        if not self._assign(self.variables.inputs[index]["name"], value):
            return
        self._inputs[index] = value
        self._changed = self._at_start
        row = [self._run.time, *self._inputs]
        if self._recorded[-1][0] == row[0]:
            self._recorded[-1] = row
        else:
            self._recorded.append(row)

    def _set_parameter(self, reference: int, value: float) -> None:
        """Set a tunable parameter now, or another one from the next reset on."""
        each = self.variables.parameters[reference]
        if each["fixed"]:
            self._values[each["name"]] = value
        elif self._assign(each["name"], value):
            self._values[each["name"]] = value
            if self._at_start:
                self._changed = True
                self._made_with[each["name"]] = value
            else:
                self._changes.append({"time": self._run.time, "reference": reference, "value": value})

    def _assign(self, name: str, value: float) -> bool:
        """Set a variable; a refusal is told to the page."""
        if self._failed:
            return False
        try:
            self._run[name] = value
        except (InputError, SimulationError) as error:
            self._tell({"kind": "log", "sentence": str(error)})
            return False
        return True

    def _shown_inputs(self) -> list[float]:
        """Return the inputs as the page shows them: at their start where it has not set them."""
        starts = (each["start"] for each in self.variables.inputs)
        return [start if value is None else value for value, start in zip(self._inputs, starts, strict=True)]

    def _choose(self, references: list[int]) -> None:
        self._chosen = references
        self._samples = []
        self._sampled = -math.inf
        self._sample()

    def _sample(self) -> None:
        if not self._chosen or self._failed:
            return
        values = self._read()
        self._samples.append([self._run.time, *(float(values[each]) for each in self._chosen)])
        self._sampled = self._run.time

    def _read(self) -> np.ndarray:
        """Return the present values of all signals."""
        return np.concatenate([np.zeros(0), *(port.read() for port in self._ports)])[self.variables.order]

    def _show(self, *, always: bool = False) -> None:
        """Tell the page where the run is, if it is time to and it has taken what was told before."""
        now = clock.perf_counter()
        if self._failed or not (always or (now - self._pictured > _PICTURE and not self._waiting())):
            return
        if always and self._run.time > self._sampled:
            self._sample()
        poses, pressures, circuit = self.picture.at(self._run.time, self._read())
        message = {"kind": "picture", "time": self._run.time, "steps": self._steps, "inputs": self._shown_inputs()}
        self._tell({**message, "poses": poses, "pressures": pressures, "circuit": circuit, "samples": self._samples})
        self._samples = []
        self._pictured = now

    def _save(self, number: int) -> None:
        path = self._folder / f"{number}.zip"
        try:
            self._run.save(path)
        except (InputError, SimulationError) as error:
            self._tell({"kind": "log", "sentence": str(error)})
            return
        rows = tuple(tuple(row) for row in self._recorded)
        changes = tuple(self._changes)
        self._saved[number] = _Saved(
            path, self._run.time, rows, tuple(self._inputs), dict(self._values), dict(self._made_with), changes
        )
        self._tell({"kind": "saved", "id": number, "time": self._run.time})
