"""A coupled run in a thread, at real time, that does what a page asks for and tells it where it is."""

from __future__ import annotations

import logging
import math
import queue
import threading
import time as clock
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mbsfmu.base.errors import InputError, SimulationError
from mbsfmu.base.scratch import scratch
from mbsfmu.cosim.fmus.fmu_instance import REMARK, message_parts
from mbsfmu.cosim.runs.cosimulation import Cosimulation
from mbsfmu.cosim.runs.run_recorder import CosimulationInterrupted
from mbsfmu.view.live.live_picture import LivePicture
from mbsfmu.view.live.live_requests import checked_request, request_of
from mbsfmu.view.live.live_variables import LiveVariables

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
