"""A whole can do what its parts can, each with its own share; what a part cannot do is said by its name."""

from __future__ import annotations

import numpy as np
import pytest
from spatial import random_tree
from systems.test_coupled_connections import Slider

import mbsfmu
from mbsfmu.equations.kinematics import NO_TURN
from mbsfmu.systems.concatenated_system import CoupledSystem
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem
from mbsfmu.systems.system import (
    SIZES,
    ConstraintCorrections,
    LoopsInUse,
    System,
    SystemContext,
    require_capability,
    starts,
)

ROWS, SHARES = (0, 1, 6, 8, 9), ((0, 1), (1, 3, 4))
"""Some of the five equations of a five-bar's loop and the five of Bennett's linkage, of all and of each."""


def moving(system: System, random: np.random.Generator) -> SystemContext:
    instant = system.instant(lambda _, size: random.normal(size=size))
    instant.parameters[:] = starts(system.parameters)
    instant.references[:] = np.tile(NO_TURN, system.references)
    return instant


def joined(instants: list[SystemContext]) -> SystemContext:
    return SystemContext(**{part: np.concatenate([getattr(each, part) for each in instants]) for part in SIZES})


def same(whole: np.ndarray | tuple, parts: list) -> None:
    if isinstance(whole, tuple):
        for index, each in enumerate(whole):
            same(each, [part[index] for part in parts])
    else:
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_every_part_gets_its_share_of_instant_and_loop_equations() -> None:
    models = [mbsfmu.models.built_in(name).systems["mechanism"] for name in ("five-bar", "bennett")]
    parts = [MechanismSystem(data, f"m{index}") for index, data in enumerate((*models, random_tree(3, 3)))]
    assert [len(part.constraints) for part in parts[:2]] == [5, 5]
    whole = CoupledSystem("whole", {part.name: part for part in parts}, ())
    random = np.random.default_rng(1)
    instants = [moving(part, random) for part in parts]
    together = joined(instants)
    active, multipliers = np.array([1.0, 1.0, 1.0, 0.0, 1.0]), random.normal(size=5)
    loops = LoopsInUse(ROWS, active, multipliers)
    shares = [
        LoopsInUse(rows, active[own], multipliers[own])
        for rows, own in zip((*SHARES, ()), (slice(2), slice(2, 5), slice(5, 5)), strict=True)
    ]
    each = list(zip(parts, instants, shares, strict=True))
    same(whole.residual(together), [part.residual(now) for part, now, _ in each])
    same(whole.initial_momenta(together), [part.initial_momenta(now) for part, now, _ in each])
    same(whole.evaluate_reactions(together, loops), [part.evaluate_reactions(now, own) for part, now, own in each])
    same(whole.momentum_rates(together, loops), [part.momentum_rates(now, own) for part, now, own in each])
    same(whole.balance(together, loops), [part.balance(now, own) for part, now, own in each])
    same(whole.canonical_momenta(together, loops), [part.canonical_momenta(now, own) for part, now, own in each])
    assert np.isfinite(whole.forward_dynamics(together, loops, 2.0)[0]).all()
    for name in ("forward_dynamics", "impulsive_velocities", "loop_accelerations", "loop_rates"):
        same(
            getattr(whole, name)(together, loops, 2.0), [getattr(part, name)(now, own, 2.0) for part, now, own in each]
        )
    assert whole.references
    moved, separate = (
        whole.with_references(together, None),
        [part.with_references(now, None) for part, now, _ in each],
    )
    same(moved.references, [own.references for own in separate])
    same(moved.momenta, [own.momenta for own in separate])


def test_parts_with_other_coordinates_than_at_the_start_are_placed_beside_those_without() -> None:
    absolute = AbsoluteSystem(mbsfmu.models.built_in("pendulum-2").systems["mechanism"], "links")
    whole = CoupledSystem("whole", {"slider": Slider(), "links": absolute}, ())
    assert whole.start_system.coordinates[0].name == "slider.displacement"
    instant = moving(whole, np.random.default_rng(2))
    coordinates, velocities = np.array([0.7, 0.3, -0.2]), np.array([0.1, 1.0, 2.0])
    own = whole.arguments_of_parts("instant", instant)[1]
    placed = absolute.place(coordinates[1:], velocities[1:], own)
    same(whole.place(coordinates, velocities, instant), [(coordinates[:1], velocities[:1]), placed])
    # Hinged at the origin, its centre at half of 1 m.
    np.testing.assert_allclose(placed[0][:2], 0.5 * np.array([np.cos(0.3), np.sin(0.3)]), atol=1e-15)


def test_what_a_part_cannot_do_is_said_by_its_name() -> None:
    mechanism = MechanismSystem(mbsfmu.models.built_in("pendulum-1").systems["mechanism"], "links")
    whole = CoupledSystem("whole", {"links": mechanism, "slider": Slider()}, ())
    instant = moving(whole, np.random.default_rng(3))
    with pytest.raises(TypeError, match="'slider' of 'whole' has coordinates, but no function 'forward_dynamics'"):
        whole.forward_dynamics(instant, LoopsInUse(()), 0.0)
    with pytest.raises(TypeError, match="'links' of 'whole' has coordinates, but no function 'free_accelerations'"):
        whole.free_accelerations(instant)
    with pytest.raises(TypeError, match=r"\(MechanismSystem\) is none of those with ConstraintCorrections"):
        require_capability(mechanism, ConstraintCorrections)


def test_what_has_no_coordinates_needs_no_functions_of_motion() -> None:
    circuit = mbsfmu.models.four_bar().systems["circuit"]
    whole = mbsfmu.system_model.coupled_model.CoupledModel(name="alone", systems={"circuit": circuit}).system()
    instant = moving(whole, np.random.default_rng(4))
    accelerations, multipliers = whole.forward_dynamics(instant, LoopsInUse(()), 0.0)
    assert accelerations.shape == multipliers.shape == whole.initial_momenta(instant).shape == (0,)
