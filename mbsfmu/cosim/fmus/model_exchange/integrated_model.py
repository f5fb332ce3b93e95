"""Integration of continuous states from event to event, for one FMU or several together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

from mbsfmu.base.errors import SimulationError
from mbsfmu.base.times import NEIGHBOURS, resolution
from mbsfmu.cosim.fmus.event_iteration import MOST_ITERATIONS, gets_nowhere
from mbsfmu.cosim.fmus.model_exchange.integrator import Floats, FmuIntegrator

_SAME_EVENT = 1e-9
"""Share of a step behind its end in which an event counts as one at the end."""


class IntegratedModel(ABC):
    """A model whose continuous states the master integrates, with its events.

    Attributes
    ----------
    name
        Its name in messages.
    integrator
        What makes the steps.
    """

    name: str
    integrator: FmuIntegrator
    _follows_event: bool

    @property
    @abstractmethod
    def following(self) -> float:
        """Time of the next event that it has named, in s; infinity for none."""

    @property
    @abstractmethod
    def is_over(self) -> bool:
        """Whether it has ended the run."""

    @property
    @abstractmethod
    def is_continuous(self) -> bool:
        """Whether it has continuous states or event indicators."""

    @abstractmethod
    def jumped(self) -> bool:
        """Return whether inputs differ from their values at the end of the last step."""

    @abstractmethod
    def states_now(self) -> Floats:
        """Return the states where it is; one that stands in where there are none."""

    @abstractmethod
    def arrive(self, time: float, states: Floats) -> tuple[Floats, bool]:
        """Bring it to the end of a step of the integrator, a time in s.

        Returns
        -------
        tuple
            The states there, which are others than given where they had to be corrected; whether it asks for an event.
        """

    @abstractmethod
    def event(self) -> AbstractContextManager[None]:
        """Enter event mode, and leave it at the end."""

    @abstractmethod
    def count_event(self, time: float, *, inside: bool) -> None:
        """Count an event at a time in s, which may be inside of a communication step."""

    def _go(self, now: float, end: float) -> float:
        """Go from a time in s to another one, event by event, or to where the run is ended; return where it is.

        Raises
        ------
        SimulationError
            When it cannot be integrated, or events do not end.
        """
        if self.jumped():
            with self.event():
                pass
        # An event that the FMU names a little behind the end, for it counts in another way, is one at the end.
        last, stays = end + _SAME_EVENT * (end - now) + NEIGHBOURS * resolution(end), 0
        while not self.is_over and (now < end or self.following <= last):
            before = now
            now, happens = self._integrate(now, max(self.following, now) if self.following <= last else end)
            if not self.is_over and (happens or self.following <= now):
                with self.event():
                    self.count_event(now, inside=now < end)
            stays = stays + 1 if gets_nowhere(before, now, end) else 0
            if stays > MOST_ITERATIONS:
                raise SimulationError(f"{self.name} has one event after the other at t = {now:.9g} s")
        return now

    def _integrate(self, now: float, goal: float) -> tuple[float, bool]:
        """Go from a time in s to a goal or an event before it; return where that is and whether one happens."""
        states, happens = self.states_now(), False
        integrates = goal - now > NEIGHBOURS * resolution(goal) and self.is_continuous
        if integrates:
            self.integrator.begin(now, states, goal, follows_event=self._follows_event)
            self._follows_event = False
        while now < goal and not (happens or self.is_over):
            now, reached, happens = self.integrator.advance() if integrates else (goal, states, False)
            states, asks = self.arrive(now, reached)
            if states is not reached and integrates:
                self.integrator.correct(states)
            happens = happens or asks
        return now, happens
