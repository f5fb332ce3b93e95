"""Rings of light and of heavy links, and with both: what formulations are off by is the error of their steps."""

from __future__ import annotations

import numpy as np
import pytest
from rings import ring

import mbsfmu
from mbsfmu import Beam, CoupledModel, Fixed, Mechanism, Prismatic, Revolute, RigidBody, Spherical
from mbsfmu.model import along
from mbsfmu.simulation.continuous_states import ContinuousStates
from mbsfmu.simulation.run_result import Result
from mbsfmu.simulation.simulation import Simulation

STOP, SIDES = 0.1, 6
ANGLES = [f"link_{index}.angle" for index in range(SIDES - 1)]


def tight(model: CoupledModel) -> Simulation:
    """With accelerations, and no error to speak of."""
    return model.simulation(
        formulation="dca", solver="dop853", relative_tolerance=1e-12, absolute_tolerance=1e-12, stabilisation=10.0
    )


def test_the_trapezoidal_rule_with_momenta_is_of_second_order() -> None:
    model = ring(SIDES, odd=1e-4)
    exact = tight(model).run(stop=STOP)

    def off(step: float) -> float:
        run = model.simulation(formulation="hdca", solver="trapezoidal", step=step).run(stop=STOP)
        return max(abs(float(run[name][-1] - exact[name][-1])) for name in ANGLES)

    steps = np.array([4e-3, 2e-3, 1e-3])
    errors = [off(step) for step in steps]
    assert np.polyfit(np.log(steps), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("solver", ["rk45", "rodas5p"])
def test_momenta_are_as_accurate_as_velocities_whatever_the_masses(solver: str) -> None:
    """Under gravity alone rings of all masses move alike: light ones, usual ones and heavy ones take the same steps."""
    exact, times = tight(ring(SIDES)).run(0.5), {"stop": 0.5, "output_step": 1e-3}
    tolerances = {"solver": solver, "relative_tolerance": 1e-6, "absolute_tolerance": 1e-6}

    def off(found: Result) -> float:
        return max(float(np.max(np.abs(found[name] - exact[name]))) for name in ANGLES)

    def run(formulation: str, mass: float) -> Result:
        return (
            ring(SIDES, odd=mass, usual=mass)
            .simulation(formulation=formulation, compiled=False, **tolerances)
            .run(**times)
        )

    by_velocities, by_momenta = run("dca", 1.0), [run("hdca", mass) for mass in (2.0**-10, 1.0, 2.0**10)]
    assert len({found.statistics.steps for found in by_momenta}) == 1
    assert max(map(off, by_momenta)) < 6.0 * off(by_velocities)


def test_the_newton_iteration_of_momenta_is_the_same_whatever_the_masses() -> None:
    models = [ring(SIDES, odd=mass, usual=mass) for mass in (2.0**-10, 1.0, 2.0**10)]
    options = {"formulation": "hdca", "solver": "trapezoidal", "step": 5e-3, "compiled": False}
    runs = [model.simulation(**options).run(stop=STOP) for model in models]
    assert len({str(run.statistics.iterations) for run in runs}) == 1
    for run in runs[1:]:
        np.testing.assert_allclose(run["link_2.angle"], runs[0]["link_2.angle"], rtol=1e-13)


@pytest.mark.parametrize("name", ["slewing-four-bar", "pendulum-4", "bennett"])
def test_apparent_inertias_are_those_of_the_mass_matrix(name: str) -> None:
    """1 / (M⁻¹)ᵢᵢ, with M from the derivative of the equations of motion."""
    initialization = mbsfmu.models.built_in(name).simulation(formulation="hdca", compiled=False).initialization
    found, functions = initialization.apparent_inertias, initialization.functions
    assert initialization.largest_inertia > 0.0  # the functions are at the start
    mass = functions.equilibrium()[0]
    np.testing.assert_allclose(found, 1.0 / np.diag(np.linalg.inv(mass)), rtol=1e-9)


def rope(links: int, load: float) -> CoupledModel:
    """A bent rope of light links on balls, with a heavy load, which hangs on an arm that slides on a turning column."""
    column = RigidBody(name="column", mass=80.0, inertia=(3.0, 2.0, 3.0), points={"rail": (0.3, 2.0, 0.0)})
    arm = RigidBody(name="arm", mass=50.0, inertia=(1.0, 9.0, 9.0), points={"tip": (2.0, 0.1, 0.0)})
    plate = RigidBody(name="plate", mass=1.0, inertia=(0.1, 0.1, 0.1), points={"hole": (0.0, -0.1, 0.0)})
    chain = tuple(Beam(name=f"link_{each}", length=0.15, mass=1.2, axial_inertia=1e-3) for each in range(links))
    last = RigidBody(name="load", mass=load, inertia=(0.2 * load,) * 3, centre=(0.0, -0.8, 0.0))
    ends = ["plate.hole", *(f"{each.name}.end" for each in chain)]
    joints = [
        Revolute(name="slew", parent="ground.O", child="column.origin", axis=(0.0, 1.0, 0.0)),
        Prismatic(name="slide", parent="column.rail", child="arm.origin", axis=(1.0, 0.0, 0.0)),
        Fixed(name="bolts", parent="arm.tip", child="plate.origin"),
        *(
            Spherical(
                name=f"ball_{each}", parent=ends[each], child=f"link_{each}.start",
                angles=(0.1, -0.2, -1.5 * (not each)),
            )
            for each in range(links)
        ),
        Spherical(name="hook", parent=ends[-1], child="load.origin"),
    ]  # fmt: skip
    mechanism = Mechanism(
        ground={"O": (0.0, 0.0, 0.0)}, bodies=(column, arm, plate, *chain, last), joints=tuple(joints)
    )
    return CoupledModel(name="rope", systems={"mechanism": mechanism})


@pytest.mark.parametrize("load", [1.0, 1.5e4])
def test_apparent_inertias_of_light_links_before_a_heavy_load(load: float) -> None:
    """As those above; the recursion of articulated bodies about one origin has 1e16 kg m² for the column then."""
    initialization = rope(24, load).simulation(formulation="hdca", compiled=False).initialization
    assert initialization.largest_inertia > 0.0
    mass = initialization.functions.equilibrium()[0]
    scale = 1.0 / np.sqrt(np.diag(mass))
    expected = 1.0 / (scale**2 * np.diag(np.linalg.inv(scale[:, None] * mass * scale)))
    np.testing.assert_allclose(initialization.apparent_inertias, expected, rtol=1e-5)


def test_units_for_model_exchange_tell_the_magnitude_of_momenta() -> None:
    """A rod of m l² / 3 about its hinge."""
    rod = RigidBody(name="rod", mass=3e-3, inertia=(1e-3, 1e-3, 1e-3), centre=along(0.5), length=2.0)
    hinge = Revolute(name="hinge", parent="ground.O", child="rod.origin")
    mechanism = Mechanism(ground={"O": (0.0, 0.0, 0.0)}, bodies=(rod,), joints=(hinge,))
    model = CoupledModel(name="one", systems={"mechanism": mechanism})
    (momentum,) = ContinuousStates.of(model.simulation(formulation="hdca", solver="rk45", compiled=False)).own
    assert momentum.nominal == pytest.approx(1e-3 + 3e-3 * 1.0**2, rel=1e-12)
