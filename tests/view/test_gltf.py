"""Files of glTF, read by other libraries: shapes with the volumes of closed forms, poses as they were simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from pygltflib import GLTF2, Node
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu import (
    BoxShape,
    CoupledModel,
    CylinderShape,
    InputError,
    Mechanism,
    PlateShape,
    Revolute,
    RigidBody,
    RodShape,
    SphereShape,
    SpringDamper,
)
from mbsfmu.view.scene.gltf import Triangles, coil, tessellated

PLACED = {"position": (0.0, 0.0, 0.0), "quaternion": (0.0, 0.0, 0.0, 1.0)}
HOOK = ((0.0, 0.0), (3.0, 0.0), (3.0, 2.0), (2.0, 2.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0))
"""A U of area 5, whose corners are not those of its hull."""
RING = [(np.cos(turn), np.sin(turn)) for turn in np.linspace(0.0, 2 * np.pi, 33)[:-1]]
CIRCLE = 16.0 * np.sin(np.pi / 16.0) / np.pi
"""Area of 32 corners by that of their circle."""


def mesh_of(surface: Triangles) -> trimesh.Trimesh:
    faces = np.arange(len(surface.corners)).reshape(-1, 3) if surface.indices is None else surface.indices
    mesh = trimesh.Trimesh(surface.corners, faces, process=False)
    mesh.merge_vertices(merge_norm=True)
    mesh.update_faces(mesh.nondegenerate_faces())
    return mesh


@pytest.mark.parametrize(
    ("shape", "volume", "extents", "tolerance"),
    [
        ({"kind": "box", "size": (1.0, 2.0, 3.0)}, 6.0, (1.0, 2.0, 3.0), 1e-12),
        ({"kind": "plate", "outline": HOOK, "thickness": 0.5}, 2.5, (3.0, 2.0, 0.5), 1e-12),
        ({"kind": "plate", "outline": HOOK[::-1], "thickness": 0.5}, 2.5, (3.0, 2.0, 0.5), 1e-12),
        ({"kind": "plate", "outline": RING, "thickness": 1.0}, np.pi * CIRCLE, (2.0, 2.0, 1.0), 1e-12),
        ({"kind": "cylinder", "radius": 0.5, "length": 4.0}, np.pi * CIRCLE, (1.0, 1.0, 4.0), 1e-12),
        ({"kind": "sphere", "radius": 0.5}, np.pi / 6.0, (1.0, 1.0, 1.0), 2e-2),
        (
            {"kind": "rod", "start": (0.0, 0.0, 0.0), "end": (0.0, 3.0, 4.0), "radius": 0.2},
            np.pi * (0.04 * 5.0 + 4.0 / 3.0 * 0.008),
            (0.4, 5.4, 0.4),
            2e-2,
        ),
    ],
    ids=["box", "plate", "clockwise", "ring", "cylinder", "sphere", "rod"],
)
def test_shapes_are_closed_and_have_their_volumes(
    shape: dict[str, Any], volume: float, extents: tuple[float, ...], tolerance: float
) -> None:
    mesh = mesh_of(tessellated({**PLACED, **shape}))
    assert mesh.is_watertight
    assert mesh.volume == pytest.approx(volume, rel=tolerance)  # negative where triangles face inwards
    np.testing.assert_allclose(mesh.extents, extents, rtol=1e-12)
    np.testing.assert_allclose(mesh.centroid if "plate" not in shape["kind"] else 0.0, 0.0, atol=1e-12)


@pytest.mark.parametrize("outline", [HOOK, (*HOOK[4:], *HOOK[:4]), [(x, -y) for x, y in HOOK]])
def test_plates_are_covered_once(outline: Sequence[tuple[float, float]]) -> None:
    """Two faces of area 5, and walls along the 12 m around them: no triangle lies on another one or outside."""
    mesh = mesh_of(tessellated({"kind": "plate", "outline": outline, "thickness": 0.5}))
    assert mesh.area == pytest.approx(2.0 * 5.0 + 0.5 * 12.0, rel=1e-12)


@pytest.mark.parametrize(
    "shape", [{"kind": "sphere", "radius": 0.5}, {"kind": "cylinder", "radius": 1.0, "length": 2.0}]
)
def test_normals_point_outwards(shape: dict[str, Any]) -> None:
    surface = tessellated(shape)
    assert surface.normals is not None
    np.testing.assert_allclose(np.linalg.norm(surface.normals, axis=1), 1.0, rtol=1e-12)
    assert np.all(np.sum(surface.normals * surface.corners, axis=1) > 0.0)


def test_springs_have_the_length_and_the_radius_of_one() -> None:
    coiled = coil()
    assert np.ptp(coiled.corners, axis=0) == pytest.approx((2.32, 1.0 + 0.5 / 9.0, 2.32), rel=1e-2)


class Read:
    """A file, read by pygltflib."""

    def __init__(self, path: Path) -> None:
        self.file = GLTF2().load(path)
        self.content = self.file.binary_blob()
        self.nodes = {each.name: index for index, each in enumerate(self.file.nodes) if each.name}

    def values(self, accessor: int) -> np.ndarray:
        found = self.file.accessors[accessor]
        view = self.file.bufferViews[found.bufferView]
        assert found.componentType == 5126
        width = {"SCALAR": 1, "VEC3": 3, "VEC4": 4}[found.type]
        return np.frombuffer(self.content, "<f4", found.count * width, view.byteOffset).reshape(-1, width)

    @property
    def times(self) -> np.ndarray:
        (animation,) = self.file.animations
        (accessor,) = {each.input for each in animation.samplers}
        return self.values(accessor)[:, 0]

    def moved(self, node: str, path: str) -> np.ndarray:
        """Return what the animation gives to a node."""
        (animation,) = self.file.animations
        (channel,) = (
            each for each in animation.channels if each.target.node == self.nodes[node] and each.target.path == path
        )
        return self.values(animation.samplers[channel.sampler].output)

    def point(self, node: str, local: tuple[float, float, float]) -> np.ndarray:
        """Return a point of a node at the frames, in the frame of the machine."""
        return Rotation.from_quat(self.moved(node, "rotation")).apply(local) + self.moved(node, "translation")

    def node(self, name: str) -> Node:
        return self.file.nodes[self.nodes[name]]


@pytest.fixture(scope="module")
def bar(tmp_path_factory: pytest.TempPathFactory) -> tuple[mbsfmu.Result, Read, Path]:
    """The four-bar, whose valve opens after a second."""
    result = mbsfmu.models.four_bar().simulation(step=2e-3).run(2.5)
    path = tmp_path_factory.mktemp("gltf") / "bar.glb"
    result.animate().save(path)
    return result, Read(path), path


def test_points_go_where_they_were_simulated(bar: tuple[mbsfmu.Result, Read, Path]) -> None:
    """The tip of the boom, 3 m from its hinge, by the recorded angle alone."""
    result, read, _ = bar
    angle = np.interp(read.times, result.time, result["boom.angle"])
    assert np.ptp(angle) > 0.05
    length = mbsfmu.models.four_bar().systems["mechanism"].bodies[0].length
    there = length * np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    np.testing.assert_allclose(read.point("boom", (length, 0.0, 0.0)), there, rtol=0.0, atol=2e-6)
    assert read.times[0] == 0.0
    assert read.times[-1] == pytest.approx(2.5)


def test_cylinders_are_as_long_as_they_were(bar: tuple[mbsfmu.Result, Read, Path]) -> None:
    """From the base of the barrel to the eye of the rod; both look along the cylinder."""
    result, read, _ = bar
    barrel, rod = (f"mechanism.cylinder.{each}" for each in ("barrel", "rod"))
    gaps = read.moved(rod, "translation") - read.moved(barrel, "translation")
    lengths = np.interp(read.times, result.time, result["cylinder.length"])
    np.testing.assert_allclose(np.linalg.norm(gaps, axis=1), lengths, rtol=0.0, atol=2e-6)
    along = Rotation.from_quat(read.moved(barrel, "rotation")).apply((0.0, 1.0, 0.0))
    np.testing.assert_allclose(along, gaps / lengths[:, None], rtol=0.0, atol=2e-6)
    np.testing.assert_array_equal(read.moved(barrel, "rotation"), read.moved(rod, "rotation"))


def test_barrels_and_rods_lie_between_their_eyes(bar: tuple[mbsfmu.Result, Read, Path]) -> None:
    """The barrel goes from its eye over dead length, stroke and head; a retracted rod ends before the dead length."""
    _, read, _ = bar
    circuit = mbsfmu.models.four_bar().systems["circuit"]
    (cylinder,) = (each for each in circuit.components if each.type == "cylinder")
    spare = cylinder.retracted_length - cylinder.stroke
    reach = cylinder.retracted_length - 0.4 * spare
    bounds = []
    for part in ("barrel", "rod"):
        mesh = read.file.meshes[read.node(f"mechanism.cylinder.{part}").mesh]
        corners = read.file.accessors[mesh.primitives[0].attributes.POSITION]
        bounds.append((corners.min[1], corners.max[1], corners.max[0]))
    barrel, rod = bounds
    assert barrel[:2] == pytest.approx((0.0, cylinder.stroke + 0.6 * spare), abs=1e-6)
    assert rod[:2] == pytest.approx((-reach - rod[2], rod[2]), abs=1e-6)  # with its round ends


def turning(gravity: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> CoupledModel:
    """A wheel that turns four times around in a second, held by a weak spring to the ground."""
    mechanism = Mechanism(
        gravity=gravity,
        ground={"O": (0.0, 0.0, 0.0), "A": (3.0, 0.0, 0.0)},
        bodies=(RigidBody(name="wheel", mass=1.0, inertia=(1.0, 1.0, 1.0), points={"P": (1.0, 0.0, 0.0)}),),
        joints=(Revolute(name="axle", parent="ground.O", child="wheel.origin", angular_velocity=8.0 * np.pi),),
        forces=(SpringDamper(name="band", start="ground.A", end="wheel.P", stiffness=1e-6, free_length=1.0),),
    )
    return CoupledModel(name="turning", systems={"mechanism": mechanism})


@pytest.fixture(scope="module")
def wheel() -> mbsfmu.Animation:
    return turning(gravity=(0.0, 9.81, 0.0)).simulation(compiled=False).run(1.0).animate()


def test_quaternions_go_the_short_way(wheel: mbsfmu.Animation, tmp_path: Path) -> None:
    """Over 180° as well, where those of recorded orientations change their signs."""
    wheel.save(tmp_path / "wheel.glb")
    turned = Read(tmp_path / "wheel.glb").moved("wheel", "rotation")
    np.testing.assert_allclose(np.linalg.norm(turned, axis=1), 1.0, atol=1e-6)
    assert np.all(np.sum(turned[1:] * turned[:-1], axis=1) > 0.9)


def test_springs_are_stretched_between_their_ends(wheel: mbsfmu.Animation, tmp_path: Path) -> None:
    wheel.save(tmp_path / "wheel.glb")
    read = Read(tmp_path / "wheel.glb")
    turns = 8.0 * np.pi * read.times
    gaps = np.stack([np.cos(turns) - 3.0, np.sin(turns), np.zeros_like(turns)], axis=1)
    scales = read.moved("mechanism.band", "scale")
    np.testing.assert_allclose(scales[:, 1], np.linalg.norm(gaps, axis=1), atol=1e-3)
    assert np.ptp(scales[:, [0, 2]]) == 0.0
    np.testing.assert_allclose(read.moved("mechanism.band", "translation"), (3.0, 0.0, 0.0) + 0.5 * gaps, atol=1e-3)


def test_files_begin_at_no_time_and_gravity_points_down(wheel: mbsfmu.Animation, tmp_path: Path) -> None:
    """Times of animations are not negative in glTF, and begin where the run does; half a turn brings −y to y."""
    later = {**wheel.payload, "time": {**wheel.payload["time"], "start": 5.0, "stop": 6.0}}
    mbsfmu.Animation(later, wheel.title).save(tmp_path / "later.glb")
    read = Read(tmp_path / "later.glb")
    assert (read.times[0], read.times[-1]) == pytest.approx((0.0, 1.0))
    up = Rotation.from_quat(read.node("machine").rotation).apply((0.0, -1.0, 0.0))
    np.testing.assert_allclose(up, (0.0, 1.0, 0.0), atol=1e-12)


def test_another_library_loads_the_machine(bar: tuple[mbsfmu.Result, Read, Path]) -> None:
    """Trimesh: its extents at the start are those of the shapes of the page, with y up."""
    scene = trimesh.load(bar[2])
    assert len(scene.geometry) == len(bar[1].file.meshes)
    assert set(scene.graph.nodes) >= {"boom", "link", "rocker", "machine"}
    turned, _ = scene.graph.get("boom")
    assert np.arctan2(turned[1, 0], turned[0, 0]) == pytest.approx(bar[0]["boom.angle"][0], abs=1e-6)


def test_what_is_up_becomes_y_and_colours_are_linear(tmp_path: Path) -> None:
    """A machine whose gravity acts along −z, with each shape; half of sRGB is 0.2140 of light."""
    lever = RigidBody(
        name="lever",
        mass=2.0,
        inertia=(0.02, 0.2, 0.2),
        shapes=(
            RodShape(start=(0.0, 0.0, 0.0), end=(1.0, 1.0, 0.0), radius=0.03, colour="#808080"),
            BoxShape(size=(0.2, 0.1, 0.1), position=(0.5, 0.1, 0.0), orientation=(0.0, 0.0, np.pi / 2)),
            CylinderShape(radius=0.05, length=0.2),
            SphereShape(radius=0.06, position=(1.0, 0.0, 0.0)),
            PlateShape(outline=((0.0, 0.0), (0.3, 0.0), (0.0, 0.2)), thickness=0.02),
        ),
    )
    mechanism = Mechanism(
        gravity=(0.0, 0.0, -9.81),
        ground={"O": (0.0, 0.0, 0.0)},
        bodies=(lever,),
        joints=(Revolute(name="hinge", parent="ground.O", child="lever.origin", axis=(0.0, 1.0, 0.0)),),
        scenery=(BoxShape(size=(2.0, 2.0, 0.1), position=(0.0, 0.0, -1.5)),),
    )
    model = CoupledModel(name="crane", systems={"mechanism": mechanism})
    path = tmp_path / "lever.glb"
    model.simulation(compiled=False).run(0.2).animate().save(path)
    read = Read(path)
    up = Rotation.from_quat(read.node("machine").rotation).apply((0.0, 0.0, 1.0))
    np.testing.assert_allclose(up, (0.0, 1.0, 0.0), atol=1e-12)
    rod, box, *_ = (read.file.nodes[each] for each in read.node("lever").children)
    np.testing.assert_allclose(
        Rotation.from_quat(rod.rotation).apply((0.0, 1.0, 0.0)), np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    )
    assert rod.translation == pytest.approx((0.5, 0.5, 0.0))
    np.testing.assert_allclose(Rotation.from_quat(box.rotation).apply((1.0, 0.0, 0.0)), (0.0, 1.0, 0.0), atol=1e-7)
    grey = next(each for each in read.file.materials if each.name == "#808080")
    assert grey.pbrMetallicRoughness.baseColorFactor == pytest.approx((0.2158605, 0.2158605, 0.2158605, 1.0), rel=1e-6)
    (stone,) = read.node("ground").children
    assert read.file.nodes[stone].translation == pytest.approx((0.0, 0.0, -1.5))
    whole = trimesh.load(path)
    assert whole.bounds[0, 1] == pytest.approx(-1.55, abs=1e-6)


def test_other_names_are_refused(tmp_path: Path) -> None:
    animation = mbsfmu.models.pendulum(1).simulation(compiled=False).run(0.1).animate()
    with pytest.raises(InputError, match=r"its name must end in \.html, \.htm or \.glb"):
        animation.save(tmp_path / "machine.gltf")
