"""The learning environment: Gymnasium's own vectors of single simulations, episodes that differ, machines that fail."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from driven_crank import CRANK, ROD, SPEED, START, driven_crank
from oscillator_in_closed_form import oscillator

from mbsfmu import Ensemble, InputError
from mbsfmu.compiling.compiler import has_compiler
from mbsfmu.tracing.workspace import Floats

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import data_equivalence  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402
from gymnasium.wrappers.vector import ClipAction, RecordEpisodeStatistics  # noqa: E402

pytestmark = pytest.mark.skipif(not has_compiler(), reason="there is no C compiler")
STEP: dict[str, Any] = {"step": 1e-3}
SINGLE: dict[str, Any] = {**STEP, "formulation": "double-step", "solver": "trapezoidal"}
STARTS, INTERVAL, LIMIT, FAR, STRONGEST = (0.1, 0.2, -0.24), 0.02, 0.3, 0.26, 80.0
OBSERVED = ("slider.displacement", "slider.velocity")


def reward(transition: Any) -> Floats:
    """Reward what is near zero, reached without force."""
    gained = np.abs(transition.before["slider.displacement"]) - np.abs(transition.after["slider.displacement"])
    return gained - 1e-3 * np.abs(transition.actions["motor.force"]) + transition.time


def is_far(transition: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """End where the slider is far."""
    return np.abs(transition.after["slider.displacement"]) > FAR


def ensemble() -> Ensemble:
    """Oscillators that start apart."""
    starts = {"slider.displacement": STARTS, "slider.velocity": 0.0}
    return oscillator(driven=False).ensemble(starts=starts, **STEP)


def environment(**given: Any) -> Any:
    """An environment of three oscillators."""
    chosen = {"interval": INTERVAL, "time_limit": LIMIT, "terminated": is_far, **given}
    return ensemble().vector_env({"motor.force": (-STRONGEST, STRONGEST)}, OBSERVED, reward, **chosen)


class Single(gymnasium.Env[Floats, Floats]):
    """The same task with one simulation by the scalar loop."""

    def __init__(self, start: float) -> None:
        self.start, self.simulation = start, oscillator(driven=False).simulation(**SINGLE)
        self.action_space = gymnasium.spaces.Box(-STRONGEST, STRONGEST, (1,), dtype=np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), dtype=np.float64)

    def observed(self) -> Floats:
        return np.array([self.simulation.get(name) for name in OBSERVED])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Floats, dict[str, Any]]:
        super().reset(seed=seed)
        self.simulation.reset()
        self.simulation.set("slider.displacement_start", self.start)
        self.simulation.set("slider.velocity_start", 0.0)
        self.simulation.initialize()
        self.made = 0
        return self.observed(), {}

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        before = self.simulation.get("slider.displacement")
        self.simulation.set("motor.force", float(action[0]))
        self.simulation.step(self.made * INTERVAL, INTERVAL)
        self.made += 1
        place = self.simulation.get("slider.displacement")
        gained = abs(before) - abs(place) - 1e-3 * abs(float(action[0])) + self.made * INTERVAL
        return self.observed(), gained, abs(place) > FAR, self.made >= round(LIMIT / INTERVAL), {}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_it_is_gymnasiums_own_vector_of_single_simulations(mode: str) -> None:
    """Observations, rewards, ends and infos in 60 steps with random forces, some of which end episodes early."""
    own, theirs = (
        environment(autoreset=mode),
        SyncVectorEnv([lambda s=s: Single(s) for s in STARTS], autoreset_mode=mode),
    )
    assert own.metadata["autoreset_mode"] is theirs.metadata["autoreset_mode"] is AutoresetMode(mode)
    for name in ("action_space", "observation_space", "single_action_space", "single_observation_space"):
        assert getattr(own, name) == getattr(theirs, name)
    random, ends = np.random.default_rng(5), [0, 0]
    found, expected = own.reset(seed=1), theirs.reset(seed=1)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9)
    assert found[1] == {}
    for _ in range(60):
        actions = np.sign(random.uniform(-1.0, 1.0, (3, 1))) * random.uniform(0.5, 1.0, (3, 1)) * STRONGEST
        found, expected = own.step(actions), theirs.step(actions)
        for one, other in zip(found[:4], expected[:4], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert found[0] in own.observation_space
        assert found[4].keys() == expected[4].keys()
        for machine in np.flatnonzero(found[4].get("_final_obs", np.zeros(3))):
            np.testing.assert_allclose(found[4]["final_obs"][machine], expected[4]["final_obs"][machine], atol=1e-9)
            assert expected[4]["_final_obs"][machine]
        ended = found[2] | found[3]
        ends = [ends[0] + found[2].sum(), ends[1] + found[3].sum()]
        if mode == "Disabled" and ended.any():
            with pytest.raises(InputError, match=f"machine {np.argmax(ended)} has ended; call reset before step"):
                own.step(actions)
            for environ, result in ((own, []), (theirs, [])):
                result.append(environ.reset(options={"reset_mask": ended})[0])
            np.testing.assert_allclose(own.machines.values_by_column, theirs._observations, atol=1e-9)
    assert min(ends) >= 2, "there were ends of both kinds"
    own.close()
    theirs.close()


def drawn(random: np.random.Generator, count: int) -> Mapping[str, Any]:
    """Starts at random."""
    return {"slider.displacement_start": random.uniform(-0.3, 0.3, count)}


def test_seeds_repeat_and_draws_differ() -> None:
    """The same data for the same seed, by Gymnasium's comparison of whole returns."""

    def returns(seed: int) -> list[Any]:
        made = environment(draw=drawn, autoreset="SameStep")
        made.action_space.seed(7)
        first = made.reset(seed=seed)
        return [first, *(made.step(made.action_space.sample()) for _ in range(40))]

    one, again, other = returns(3), returns(3), returns(4)
    assert data_equivalence(one, again, exact=True)
    assert not data_equivalence(one, other)
    starts = one[0][0][:, 0]
    np.testing.assert_array_equal(starts, np.random.default_rng(3).uniform(-0.3, 0.3, 3))
    assert not np.any(np.isin(starts, np.concatenate([each[0][:, 0] for each in one[1:]])))


def test_returns_are_not_overwritten() -> None:
    made = environment()
    first, _ = made.reset()
    kept = first.copy()
    second = made.step(np.full((3, 1), 1.0))
    kept_too = [each.copy() for each in second[:4]]
    made.step(np.full((3, 1), -1.0))
    np.testing.assert_array_equal(first, kept)
    for one, other in zip(second[:4], kept_too, strict=True):
        np.testing.assert_array_equal(one, other)


def test_wrappers_of_gymnasium_take_it() -> None:
    """Returns of episodes, and actions that are clipped to what the machine takes."""
    made = RecordEpisodeStatistics(ClipAction(environment(terminated=None)))
    made.reset(seed=0)
    total, infos = np.zeros(3), {}
    for _ in range(round(LIMIT / INTERVAL)):
        _, rewards, terminations, truncations, infos = made.step(np.full((3, 1), 10.0 * STRONGEST))
        total += rewards
    assert truncations.all()
    assert not terminations.any()
    np.testing.assert_allclose(infos["episode"]["r"], total, rtol=1e-6)
    assert infos["episode"]["l"].tolist() == [15, 15, 15]
    made.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_machine_that_fails_terminates_with_its_sentence_and_starts_again(mode: str) -> None:
    """A crank that is longer than the rod locks after 0.08 s, as the closed form says."""
    lengths = [CRANK, 1.2 * ROD]
    speeds = {"motor.position": START, "motor.velocity": SPEED, "motor.acceleration": 0.0}
    cranks = driven_crank(None).ensemble({"crank.length": lengths}, inputs=speeds, **STEP)
    made = cranks.vector_env(
        {"motor.acceleration": (-1.0, 1.0)},
        ["crank.angle"],
        lambda transition: transition.after["slider.displacement"],
        interval=0.03,
        time_limit=3.0,
        others=["slider.displacement"],
        failure_reward=-7.0,
        autoreset=mode,
        terminated=lambda transition: np.isnan(transition.after["crank.angle"]) & (transition.time > 1e6),
    )
    first, _ = made.reset()
    nothing = np.zeros((2, 1))
    for number in (1, 2):
        observations, rewards, terminations, _, infos = made.step(nothing)
        np.testing.assert_allclose(observations[:, 0], START + SPEED * 0.03 * number, atol=1e-9)
        assert not terminations.any()
        assert infos == {}
    failing, rewards, terminations, truncations, infos = made.step(nothing)
    assert terminations.tolist() == [False, True]
    assert not truncations.any()
    assert rewards[1] == -7.0
    last = infos["final_obs"][1] if mode == "SameStep" else failing[1]
    np.testing.assert_array_equal(last, observations[1], err_msg="the last one before")
    told = (infos["final_info"] if mode == "SameStep" else infos)["failure"]
    assert told[0] is None
    assert told[1].startswith(f"machine 1 (crank.length = {lengths[1]:g} m")
    assert "the step at t = 0.08" in told[1]
    if mode == "SameStep":
        np.testing.assert_array_equal(failing[1], first[1])
    ignored = np.array([[0.0], [np.nan if mode == "NextStep" else 0.0]])  # of the machine that starts in this step
    after, rewards, terminations, _, infos = made.step(ignored)
    angle = START + SPEED * 0.03 * (mode == "SameStep")
    np.testing.assert_allclose(after[:, 0], [START + SPEED * 0.12, angle], atol=1e-9)
    assert not terminations.any()
    assert (rewards[1] == 0.0) == (mode == "NextStep")


def test_ends_in_the_first_step_of_a_new_episode_and_failures_at_the_limit() -> None:
    """Nothing ends in the step in which machines start; a machine that fails in its last step is not truncated."""
    made, quiet = environment(terminated=lambda transition: transition.time > -1.0), np.zeros((3, 1))
    made.reset()
    assert [made.step(quiet)[2].all() for _ in range(4)] == [True, False, True, False]
    speeds = {"motor.position": START, "motor.velocity": SPEED, "motor.acceleration": 0.0}
    cranks = driven_crank(None).ensemble({"crank.length": [CRANK, 1.2 * ROD]}, inputs=speeds, **STEP)
    ended = cranks.vector_env(
        {"motor.acceleration": (-1.0, 1.0)}, ["crank.angle"], lambda each: each.time, interval=0.09, time_limit=0.09
    )
    ended.reset()
    _, _, terminations, truncations, _ = ended.step(np.zeros((2, 1)))
    assert terminations.tolist() == [False, True]
    assert truncations.tolist() == [True, False]


def refused(call: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert sentence in str(caught.value)


def test_wrong_calls_are_refused_in_a_sentence() -> None:
    made, quiet = environment(), np.zeros((3, 1))
    refused(lambda: made.step(quiet), "no machine has started; call reset before step")
    refused(lambda: made.reset(options={"mask": 1}), "the option 'mask' is not known; it may be reset_mask")
    refused(lambda: made.reset(options={"reset_mask": np.ones(2, dtype=bool)}), "a truth for each of the 3 machines")
    made.reset()
    refused(lambda: made.step(np.zeros(3)), "actions have the shape (3,); it must be (3, 1)")
    loud = np.array([[0.0], [81.0], [0.0]])
    refused(
        lambda: made.step(loud), "the action motor.force = 81 of machine 1 is refused: it must lie between -80 and 80"
    )
    refused(lambda: made.step(np.nan * loud), "the action motor.force = nan of machine 0 is refused")
    made.step(quiet)
    given: list[tuple[dict[str, Any], str]] = [
        ({"interval": 0.0}, "interval = 0.0 s must be positive"),
        ({"time_limit": 0.31}, "time_limit = 0.31 s must be a multiple of interval = 0.02 s"),
        ({"time_limit": 0.0}, "time_limit = 0 s must be a multiple"),
        ({"autoreset": "later"}, "autoreset = 'later' is not known; it may be NextStep, SameStep, Disabled"),
        ({"others": ["nothing"]}, "there is no output 'nothing'"),
    ]
    for arguments, sentence in given:
        refused(lambda arguments=arguments: environment(**arguments), sentence)
    for actions, sentence in (
        ([], "no action is named; name one input at least"),
        (["motor.force"], "the input motor.force has no bounds; give those of its actions"),
        ({"motor.force": (1.0, 1.0)}, "the bounds of the action motor.force are 1 and 1; they must ascend"),
        ({"motor.froce": (0.0, 1.0)}, "there is no input 'motor.froce'; did you mean 'motor.force'?"),
    ):
        refused(
            lambda actions=actions: ensemble().vector_env(actions, OBSERVED, reward, interval=1, time_limit=1), sentence
        )
    for wrong, sentence in (
        (lambda _: np.zeros(2), "reward returns the shape (2,); it must be (3,), one a machine"),
        (lambda _: np.array([0.0, np.nan, 0.0]), "reward returns nan for machine 1; it must be a finite number"),
    ):
        bad = ensemble().vector_env({"motor.force": (0, 1)}, OBSERVED, wrong, interval=0.1, time_limit=1)
        bad.reset()
        refused(lambda bad=bad: bad.step(quiet), sentence)
    heavy = environment(draw=lambda _, count: {"slider.mass": np.full(count, -1.0)})
    refused(heavy.reset, "machine 0: slider.mass = -1 kg is refused")


def test_an_episode_that_cannot_start_is_refused() -> None:
    """A loop that the drawn lengths do not close."""
    cranks = driven_crank(None).ensemble(
        {"crank.length": [CRANK, CRANK]}, inputs={"motor.position": 1.5, "motor.velocity": SPEED}, **STEP
    )
    made = cranks.vector_env(
        {"motor.acceleration": (-1.0, 1.0)},
        ["crank.angle"],
        lambda transition: transition.time,
        interval=0.02,
        time_limit=0.2,
        draw=lambda _, count: {"crank.length": np.linspace(CRANK, 2.0, count)},
    )
    refused(made.reset, "an episode cannot start: machine 1 (crank.length = 2 m")


def test_without_gymnasium_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    refused(environment, "a learning environment needs gymnasium: pip install 'mbsfmu[learning]'")
