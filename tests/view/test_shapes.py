"""Shapes that bodies are given: data that come back, are checked, and change no result, no FMU and no key."""

from __future__ import annotations

import base64
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbsfmu
from mbsfmu import (
    BoxShape,
    CoupledModel,
    CylinderShape,
    DataError,
    MeshShape,
    PlateShape,
    RodShape,
    SphereShape,
)
from mbsfmu.models import pendulum

TRIANGLE = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])


def with_shapes(*shapes: Any, scenery: tuple[Any, ...] = ()) -> CoupledModel:
    model = pendulum(1)
    (name, mechanism), *_ = model.systems.items()
    body = mechanism.bodies[0].model_copy(update={"shapes": shapes})
    looking = mechanism.model_copy(update={"bodies": (body,), "scenery": scenery})
    return model.model_copy(update={"systems": {name: looking}})


def drawn(model: CoupledModel) -> dict[str, Any]:
    return dict(model.simulation(compiled=False).run(0.02).animate().payload)


EVERY = (
    BoxShape(size=(1.0, 2.0, 3.0), position=(0.1, 0.2, 0.3), orientation=(0.0, 0.0, 0.5), colour="#ff0080"),
    SphereShape(radius=0.3),
    CylinderShape(radius=0.1, length=0.4, orientation=(0.3, -0.2, 0.1)),
    RodShape(start=(0.0, 0.0, 0.0), end=(1.0, 0.0, 0.0), radius=0.05),
    PlateShape(outline=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)), thickness=0.1),
)


def test_shapes_come_back_from_a_file_and_are_drawn(tmp_path: Path) -> None:
    model = with_shapes(*EVERY, scenery=(SphereShape(radius=1.0),))
    model.to_file(tmp_path / "model.json")
    again = CoupledModel.from_file(tmp_path / "model.json")
    assert again == model
    payload = drawn(again)
    shapes = payload["bodies"][0]["shapes"]
    assert [shape["kind"] for shape in shapes] == ["box", "sphere", "cylinder", "rod", "plate"]
    assert [shape["radius"] for shape in payload["scenery"]] == [1.0]
    assert shapes[0]["colour"] == "#ff0080"
    turned = Rotation.from_quat(shapes[2]["quaternion"]).as_rotvec()
    np.testing.assert_allclose(turned, (0.3, -0.2, 0.1), atol=1e-6)
    assert payload["notes"] == []


def test_no_result_no_unit_and_no_key_follows_from_shapes(tmp_path: Path) -> None:
    """The identity of a run and the GUID of a Python unit, which has the model inside, too."""
    plain, looking = pendulum(1), with_shapes(*EVERY, scenery=EVERY)
    one, other = (model.simulation(compiled=False) for model in (plain, looking))
    assert one.identity == other.identity
    np.testing.assert_array_equal(one.run(0.05).values_by_column, other.run(0.05).values_by_column)
    descriptions = []
    for name, model in (("plain", plain), ("looking", looking)):
        (tmp_path / name).mkdir()
        (path, *_) = mbsfmu.export(model, tmp_path / name, layout="monolithic", backend="python")
        with zipfile.ZipFile(path) as unit:
            text = unit.read("modelDescription.xml").decode()
        descriptions.append(text.partition('guid="')[2].partition('"')[0])
    assert descriptions[0] == descriptions[1]


def test_a_strip_is_a_plate_however_narrow_and_far_away() -> None:
    """Of 10 m by 1 mm, at 100 m from the frame."""
    outline = ((100.0, 100.0), (110.0, 100.0), (110.0, 100.001), (100.0, 100.001))
    assert PlateShape(outline=outline, thickness=0.001).outline == outline


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: BoxShape(size=(1.0, 0.0, 1.0)), r"size\[1\] is 0.0; it must be greater than 0"),
        (lambda: SphereShape(radius=1.0, colour="red"), "a colour is written as #d9902f"),
        (lambda: RodShape(start=(1.0, 0.0, 0.0), end=(1.0, 0.0, 0.0), radius=0.1), "they must be two places"),
        (
            lambda: PlateShape(outline=((0.0, 0.0), (1.0, 1.0), (3.0, 3.0)), thickness=0.1),
            "surrounds no area; its corners must not lie on a line",
        ),
        (lambda: PlateShape(outline=((0.0, 0.0), (1.0, 1.0)), thickness=0.1), "outline"),
        (lambda: MeshShape(file="part.step"), r"its name must end in .stl or .obj"),
    ],
)
def test_what_is_no_shape_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        make()


def binary_stl() -> bytes:
    rows = struct.pack("<12fH", 0.0, 0.0, 1.0, *TRIANGLE.ravel(), 0)
    return b"solid by a program that begins so".ljust(80) + struct.pack("<I", 1) + rows


TEXT_STL = "solid t\nfacet normal 0 0 1\nouter loop\n{}endloop\nendfacet\nendsolid t\n".format(
    "".join(f"vertex {x} {y} {z}\n" for x, y, z in TRIANGLE)
)
SQUARE = "v 0 0 0\nv 2 0 0\nv 2 1 0\nv 0 1 0\nf 1/1/1 2/2/1 3/3/1 -1//1\n"


@pytest.mark.parametrize(
    ("name", "content", "count"),
    [("a.stl", binary_stl(), 1), ("b.STL", TEXT_STL.encode(), 1), ("c.obj", SQUARE.encode(), 2)],
)
def test_meshes_are_read(tmp_path: Path, name: str, content: bytes, count: int) -> None:
    """In mm, say: a triangle of 2 by 1; a square of four corners becomes two triangles of the same area."""
    (tmp_path / name).write_bytes(content)
    payload = drawn(with_shapes(MeshShape(file=str(tmp_path / name), scale=(1e-3, 1e-3, 1e-3))))
    (shape,) = payload["bodies"][0]["shapes"]
    corners = np.frombuffer(base64.b64decode(shape["triangles"]), "<f4").reshape(-1, 3, 3)
    assert len(corners) == count
    np.testing.assert_allclose(corners[0, :2], 1e-3 * TRIANGLE[:2], rtol=1e-6)
    sides = corners[:, 1:] - corners[:, :1]
    assert np.sum(np.cross(sides[:, 0], sides[:, 1])[:, 2]) / 2.0 == pytest.approx(1e-6 * count)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        (b"", "has no triangles"),
        (b"v 0 0 zero\n", "is not what its name says"),
        (b"v 0 0 0\nf 1 2 3\n", "is not what its name says"),
    ],
)
def test_a_mesh_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    """The machine moves all the same, as it would without."""
    file = tmp_path / "part.obj"
    if content is not None:
        file.write_bytes(content)
    payload = drawn(with_shapes(MeshShape(file=str(file))))
    (note,) = payload["notes"]
    assert note.startswith(f"link_1: {file}")
    assert sentence in note
    assert payload["bodies"][0]["shapes"][0]["kind"] == "rod"
