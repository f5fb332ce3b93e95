"""A learning environment of Gymnasium over the machines of an ensemble."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from mbsfmu.analysis.linearization import chosen_places
from mbsfmu.base.errors import InputError
from mbsfmu.modelling.data import LARGEST
from mbsfmu.modelling.variables import Variable
from mbsfmu.simulation.simulation import Simulation
from mbsfmu.simulation.variable_table import check_value
from mbsfmu.system_model.ensemble_simulation import EnsembleSimulation, SignalValues, Transition
from mbsfmu.tracing.workspace import Floats

Truths = NDArray[np.bool_]
Bounds = Sequence[str] | Mapping[str, tuple[float, float]]
_SAME = 1e-6  # of an interval, by which a time limit may miss a multiple of it


class EnsembleVectorEnv(VectorEnv[Floats, Floats, NDArray[Any]]):
    """Environment whose actions are inputs of machines, and whose observations are their outputs.

    Made by `Ensemble.vector_env`, which says what its arguments are. Actions and observations are in the units of the
    model, as 64-bit numbers.

    Attributes
    ----------
    machines
        The machines, to read more of them.
    actions, observations
        Names of the inputs and outputs, in the order of the columns.
    """

    def __init__(
        self,
        machines: EnsembleSimulation,
        actions: Sequence[tuple[str, float, float]],
        observations: int,
        reward: Callable[[Transition], Floats],
        terminated: Callable[[Transition], Truths] | None,
        draw: Callable[[np.random.Generator, int], Mapping[str, Any]] | None,
        *,
        interval: float,
        episode: int,
        failure_reward: float,
        autoreset: str,
    ) -> None:
        self.machines = machines
        self.num_envs = machines.machines
        self.actions = tuple(name for name, _, _ in actions)
        self.observations = machines.names[:observations]
        self._reward, self._is_terminated, self._draw = reward, terminated, draw
        self._interval, self._episode, self._failure_reward = interval, episode, failure_reward
        modes = {each.value: each for each in AutoresetMode}
        if autoreset not in modes:
            raise InputError(f"autoreset = '{autoreset}' is not known; it may be {', '.join(modes)}")
        self._mode = modes[autoreset]
        self.metadata = {"autoreset_mode": self._mode, "render_modes": []}
        low, high = (np.array([bounds[side] for bounds in actions]) for side in (1, 2))
        self.single_action_space = Box(low, high, dtype=np.float64)
        self.single_observation_space = Box(-np.inf, np.inf, (observations,), dtype=np.float64)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._made = np.zeros(self.num_envs, dtype=int)  # steps of the present episodes
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._begun = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Floats, dict[str, Any]]:
        """Start machines again.

        Parameters
        ----------
        seed
            Of what `draw` draws from, which goes on from where it is without one.
        options
            Under `reset_mask` a truth for each machine, whether it is started; all are by default.

        Raises
        ------
        InputError
            When a machine cannot start with what was drawn, or an option is not known.
        """
        super().reset(seed=seed)
        given = dict(options or {})
        chosen = np.asarray(given.pop("reset_mask", np.ones(self.num_envs, dtype=bool)))
        if given:
            raise InputError(f"the option '{next(iter(given))}' is not known; it may be reset_mask")
        if chosen.dtype != bool or chosen.shape != (self.num_envs,):
            raise InputError(f"reset_mask must have a truth for each of the {self.num_envs} machines")
        self._start(chosen)
        return self._observed(), {}

    def step(self, actions: Floats) -> tuple[Floats, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Hold actions over an interval.

        Parameters
        ----------
        actions
            Of each machine, shape (n, number of actions); those of machines that start in this step have no effect.

        Returns
        -------
        tuple
            Observations, shape (n, number of observations), rewards, terminations and truncations, shape (n,), and
            infos: `failure` has the sentences of machines that have failed, whose observation is the last one before.

        Raises
        ------
        InputError
            When actions are out of bounds, or a function of the user returns what it must not.
        """
        starting = self._ended.copy()
        if not self._begun or (self._mode is AutoresetMode.DISABLED and starting.any()):
            which = f"machine {int(np.argmax(starting))} has ended" if self._begun else "no machine has started"
            raise InputError(f"{which}; call reset before step")
        acting = ~starting
        held = self._checked(actions, acting)
        if starting.any():
            self._start(starting)
        before = self.machines.values_by_column
        self._made[acting] += 1
        self.machines.advance(self._made * self._interval, held)
        failed = acting & ~self.machines.running
        transition = Transition(
            SignalValues(self.machines, before),
            SignalValues(self.machines, self.machines.values_by_column),
            held,
            np.where(failed, np.nan, self._made * self._interval),
        )
        rewards = np.where(acting, self._rewards(transition, acting & ~failed), 0.0)
        rewards[failed] = self._failure_reward
        terminations = failed | (acting & ~failed & self._terminations(transition))
        truncations = acting & ~failed & (self._made >= self._episode)
        observations = np.where(failed[:, None], before, transition.after.values_by_column)[:, : len(self.observations)]
        self._ended = terminations | truncations
        infos = self._infos(failed, observations)
        if self._mode is AutoresetMode.SAME_STEP and self._ended.any():
            ended = self._ended.copy()
            self._start(ended)
            observations = np.where(ended[:, None], self._observed(), observations)
        return observations, rewards, terminations, truncations, infos

    def close_extras(self, **_: Any) -> None:
        """Let go of the machines."""
        self.machines.close()

    def _start(self, chosen: Truths) -> None:
        """Start machines with what is drawn for them."""
        drawn = {} if self._draw is None else self._draw(self.np_random, int(chosen.sum()))
        self.machines.reset(chosen, drawn)
        if failed := [machine for machine in np.flatnonzero(chosen).tolist() if machine in self.machines.failures]:
            raise InputError(f"an episode cannot start: {self.machines.failures[failed[0]]}")
        self._made[chosen], self._ended[chosen], self._begun = 0, False, True

    def _observed(self) -> Floats:
        return self.machines.values_by_column[:, : len(self.observations)]

    def _checked(self, actions: Floats, acting: Truths) -> dict[str, Floats]:
        """Return the values of inputs by name."""
        given = np.asarray(actions, dtype=float)
        if given.shape != self.action_space.shape:
            raise InputError(f"actions have the shape {given.shape}; it must be {self.action_space.shape}")
        space = self.single_action_space
        assert isinstance(space, Box)
        wrong = acting[:, None] & ~((given >= space.low) & (given <= space.high))
        if wrong.any():
            machine, column = np.argwhere(wrong)[0]
            raise InputError(
                f"the action {self.actions[column]} = {given[machine, column]:g} of machine {machine} is refused: it "
                f"must lie between {space.low[column]:g} and {space.high[column]:g}; "
                "gymnasium.wrappers.vector.ClipAction clips actions"
            )
        within = np.clip(np.nan_to_num(given), space.low, space.high)  # those of machines that start have no effect
        return {name: within[:, column] for column, name in enumerate(self.actions)}

    def _rewards(self, transition: Transition, counted: Truths) -> Floats:
        rewards = self._returned("reward", self._reward(transition), float)
        if (wrong := counted & ~np.isfinite(rewards)).any():
            machine = int(np.argmax(wrong))
            raise InputError(f"reward returns {rewards[machine]} for machine {machine}; it must be a finite number")
        return rewards

    def _terminations(self, transition: Transition) -> Truths:
        if self._is_terminated is None:
            return np.zeros(self.num_envs, dtype=bool)
        return self._returned("terminated", self._is_terminated(transition), bool)

    def _returned(self, name: str, values: Any, kind: type) -> NDArray[Any]:
        array = np.asarray(values, dtype=kind)
        if array.shape != (self.num_envs,):
            raise InputError(f"{name} returns the shape {array.shape}; it must be ({self.num_envs},), one a machine")
        return array

    def _infos(self, failed: Truths, observations: Floats) -> dict[str, Any]:
        """Return what is told of machines beside, each with a mask of those that it is told of."""
        infos: dict[str, Any] = {}
        same = self._mode is AutoresetMode.SAME_STEP
        for machine in np.flatnonzero(self._ended).tolist():
            told = {"failure": self.machines.failures[machine]} if failed[machine] else {}
            final = {"final_obs": observations[machine], "final_info": told} if same else told
            infos = self._add_info(infos, final, machine)
        return infos


def action_bounds(bounds: Bounds, simulation: Simulation) -> list[tuple[str, float, float]]:
    """Return inputs with the least and the greatest value of their actions.

    Parameters
    ----------
    bounds
        Names of inputs, whose own bounds count, or bounds by their names.
    simulation
        The simulation that has them.

    Raises
    ------
    InputError
        When there is no such input, it has no bounds, or they are not allowed.
    """
    known, found = simulation.functions.system.inputs, {}
    given = bounds if isinstance(bounds, Mapping) else dict.fromkeys([bounds] if isinstance(bounds, str) else bounds)
    if not given:
        raise InputError("no action is named; name one input at least")
    for name, own in given.items():
        for place in chosen_places((name,), known, "input", simulation):
            found[known[place].name] = _bounds_of(known[place], own)
    return [(name, *limits) for name, limits in found.items()]


def _bounds_of(variable: Variable, given: tuple[float, float] | None) -> tuple[float, float]:
    low, high = (variable.minimum, variable.maximum) if given is None else given
    if low is None or high is None or max(abs(low), abs(high)) >= LARGEST:
        raise InputError(
            f"the input {variable.name} has no bounds; give those of its actions: {{'{variable.name}': …}}"
        )
    if not low < high:
        raise InputError(f"the bounds of the action {variable.name} are {low:g} and {high:g}; they must ascend")
    return check_value(variable, low), check_value(variable, high)


def episode_steps(interval: float, time_limit: float) -> int:
    """Return how many steps an episode has until its time limit.

    Raises
    ------
    InputError
        When the interval is not positive, or the limit no multiple of it.
    """
    if not 0.0 < interval < np.inf:
        raise InputError(f"interval = {interval} s must be positive")
    steps = time_limit / interval
    if not np.isfinite(steps) or round(steps) < 1 or abs(steps - round(steps)) > _SAME:
        raise InputError(f"time_limit = {time_limit:g} s must be a multiple of interval = {interval:g} s")
    return round(steps)
