"""Names of parts and points: what may be called how, so that every name of a variable means one thing."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

import pytest

import mbsfmu
from mbsfmu.model import Beam, Cuboid, Mechanism, RigidBody, body
from mbsfmu.model.force import Force, ForceContext, JointLoad
from mbsfmu.model.reference_types import JointReference, PointReference
from mbsfmu.modelling import DataError
from mbsfmu.parts import Cylindrical, Fixed, Free, Planar, Prismatic, Revolute, Spherical, SpringDamper, Universal
from mbsfmu.systems.mechanism.absolute_system import AbsoluteSystem
from mbsfmu.systems.mechanism.mechanism_system import MechanismSystem

JOINTS = (Revolute, Prismatic, Cylindrical, Universal, Spherical, Planar, Free, Fixed)


def rigid(name: str, **fields: Any) -> RigidBody:
    products = (0.1, 0.2, 0.3)
    return RigidBody(
        name=name,
        mass=1.0,
        inertia=(4.0, 5.0, 6.0),
        products_of_inertia=products,
        length=1.0,
        centre=(1, 2, 3),
        **fields,
    )


def everything(**points: Any) -> Mechanism:
    """A chain with every kind of body and joint; each joint is called as the body that it carries."""
    bodies = [rigid(f"body_{number}", points={"tip": (1, 2, 3), **points}) for number in range(len(JOINTS))]
    ends = ["ground.O", *(f"{each.name}.tip" for each in bodies)]
    joints = [
        kind(name=each.name, parent=parent, child=f"{each.name}.origin")
        for kind, each, parent in zip(JOINTS, bodies, ends, strict=False)
    ]
    joints += [
        Fixed(name="beam", parent=ends[-1], child="beam.start"),
        Fixed(name="cube", parent="beam.end", child="cube.centre"),
    ]
    beam = Beam(name="beam", length=1.0, mass=1.0, axial_inertia=0.1)
    cube = Cuboid(name="cube", length=0.5, mass=1.0)
    return Mechanism(ground={"O": (0, 0, 0)}, bodies=(*bodies, beam, cube), joints=tuple(joints))


def names(system: MechanismSystem) -> list[str]:
    kinds = ("coordinates", "velocities", "accelerations", "integrals", "inputs", "parameters", "outputs", "reactions")
    return [variable.name for kind in kinds for variable in getattr(system, kind)]


@pytest.mark.parametrize("kind", [MechanismSystem, AbsoluteSystem])
def test_points_may_not_be_called_as_any_variable_of_a_body_or_joint(kind: type[MechanismSystem]) -> None:
    mechanism = everything()
    owners = [each.name for each in mechanism.bodies]
    parts = (name.split(".") for name in names(kind(mechanism)))
    own = {part[1] for part in parts if part[0] in owners}
    assert own >= {"angle", "velocity_start", "quaternion", "force", "moment", "mass", "inertia_xy", "angle_start_1"}
    assert [name for name in own - {"centre", "tip"} if not body.QUANTITY.fullmatch(name)] == []


@pytest.mark.parametrize("name", ["force", "quaternion", "mass", "absolute", "cardan_angle_start", "inertia_xx"])
def test_a_point_called_as_a_variable_is_refused(name: str) -> None:
    with pytest.raises(DataError, match=f"'body': a point is called '{name}'"):
        rigid("body", points={name: (1.0, 0.0, 0.0)})


def test_the_centre_of_mass_is_no_point_of_ones_own() -> None:
    """It was taken in silence, and joints at it hung at the centre of mass instead."""
    with pytest.raises(DataError, match="point 'centre' exists already on every RigidBody"):
        rigid("body", points={"centre": (1.0, 0.0, 0.0)})
    hung = Mechanism(
        ground={"O": (0, 0, 0)},
        bodies=(RigidBody(name="body", mass=1.0, inertia=(1, 1, 1), centre=(0.5, 0, 0), points={"middle": (0, 0, 0)}),),
        joints=(Revolute(name="O", parent="ground.O", child="body.middle"),),
    )
    model = mbsfmu.CoupledModel(name="hung", systems={"mechanism": hung})
    simulation = model.simulation(compiled=False)
    # M g r over the moment about the hinge, J + M r².
    assert simulation.get("body.angular_acceleration") == pytest.approx(-9.81 * 0.5 / (1.0 + 0.25), rel=1e-12)


def test_names_of_variables_are_checked_once_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "QUANTITY", re.compile("nothing at all"))
    model = mbsfmu.CoupledModel(name="doubles", systems={"mechanism": everything(force=(1.0, 0.0, 0.0))})
    hung = model.systems["mechanism"].model_copy(
        update={"forces": (SpringDamper(name="spring", start="ground.O", end="body_1.force"),)}
    )
    with pytest.raises(DataError) as caught:
        model.model_copy(update={"systems": {"mechanism": hung}}).simulation(compiled=False)
    sentence = str(caught.value)
    assert sentence.startswith("the name 'body_1.force.x' is given to two variables")
    assert "'position of point force, x'" in sentence
    assert "'force on the child at its point of the joint, in the inertial frame'" in sentence


# -- a part that the checks have never heard of -------------------------------------------------------------------


class Rope(Force):
    type: Literal["test-rope"] = "test-rope"
    first: PointReference
    last: PointReference
    brake: JointReference

    def loads(self, now: ForceContext) -> Iterable[JointLoad]:
        return (JointLoad("brake", -now.joint("brake").rate),)


def roped(**fields: str) -> Mechanism:
    plain = mbsfmu.models.four_bar().systems["mechanism"]
    assert isinstance(plain, Mechanism)
    rope = Rope(**{"name": "rope", "first": "ground.O", "last": "boom.end", "brake": "O", **fields})
    return Mechanism(ground=plain.ground, bodies=plain.bodies, joints=plain.joints, forces=(rope,))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"last": "boom.tip"}, "test-rope 'rope': 'boom' has no point 'tip'; there are start, centre, end, C"),
        ({"first": "bom.end"}, "test-rope 'rope': there is no body 'bom'; did you mean 'boom'?"),
        ({"first": "boom.start"}, "test-rope 'rope' joins 'boom.start' and 'boom.end' of the same body"),
        ({"brake": "X"}, "test-rope 'rope': there is no joint 'X'; there are O, C, D, E"),
        (
            {"brake": "E.displacement"},
            "test-rope 'rope': joint 'E' has no coordinate 'displacement'; there are angle",
        ),
    ],
)
def test_references_of_a_new_kind_of_force_are_checked(fields: dict[str, str], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        roped(**fields)
    assert str(caught.value).startswith(sentence)
