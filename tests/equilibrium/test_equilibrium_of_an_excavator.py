"""An excavator at rest, by statics of its own."""

from __future__ import annotations

from math import cos, radians, sin

import numpy as np
import pytest
from excavator import excavator
from rest_machines import GRAVITY


def statics(point: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the forces of the excavator's cylinders, pushing, that its parts in a plane need, by Newton and Euler.

    Forces and moments of five bodies, with two components at each of six pins and three cylinders: 15 equations.
    """
    bodies = ("boom", "stick", "bucket", "rocker", "link")
    pins = (
        ("boom", None, "boom"),
        ("stick", "boom", "stick"),
        ("rocker", "stick", "rocker"),
        ("bucket", "stick", "bucket"),
        ("knee", "rocker", "link"),
        ("eye", "bucket", "link"),
    )
    cylinders = (
        ("boom_cylinder", None, "boom"),
        ("stick_cylinder", "boom", "stick"),
        ("bucket_cylinder", "stick", "rocker"),
    )
    masses = dict(zip(bodies, (1700.0, 850.0, 700.0, 40.0, 60.0), strict=True))
    matrix, right = np.zeros((15, 15)), np.zeros(15)
    for row, body in enumerate(bodies):
        right[3 * row + 1] = masses[body] * GRAVITY
        right[3 * row + 2] = masses[body] * GRAVITY * point[f"{body}_centre"][0]

    def acts(body: str | None, column: int, force: np.ndarray, at: np.ndarray) -> None:
        if body is not None:
            row = 3 * bodies.index(body)
            matrix[row : row + 2, column] += force
            matrix[row + 2, column] += at[0] * force[1] - at[1] * force[0]

    for index, (pin, inner, outer) in enumerate(pins):
        for axis in range(2):
            force = np.eye(2)[axis]
            acts(outer, 2 * index + axis, force, point[pin])
            acts(inner, 2 * index + axis, -force, point[pin])
    for index, (name, inner, outer) in enumerate(cylinders):
        start, end = point[f"{name}_start"], point[f"{name}_end"]
        along = (end - start) / np.linalg.norm(end - start)
        acts(outer, 12 + index, along, end)
        acts(inner, 12 + index, -along, start)
    solution = np.linalg.solve(matrix, right)
    return {name: float(solution[12 + index]) for index, (name, _, _) in enumerate(cylinders)}


@pytest.mark.parametrize(("hold", "horizon"), [("position", 10.0), ((), 10.0), ((), None)])
def test_excavator_at_rest_by_newton_and_euler(hold: str | tuple[()], horizon: float | None) -> None:
    """Its cylinders carry what statics of its parts say, held by closed valves, or for good by its controllers.

    For good, spools leave their overlap to feed what leaks over pistons: boom, stick and bucket are within 2° of the
    start.
    """
    model = excavator()
    found = model.equilibrium(hold, horizon=horizon)
    angle = {name: found[f"machine.{name}.angle"] for name in ("boom", "stick", "rocker", "bucket", "link")}

    def turned(by: float, vector: tuple[float, float]) -> np.ndarray:
        return np.array([[cos(by), -sin(by)], [sin(by), cos(by)]]) @ np.array(vector)

    boom, stick = angle["boom"], angle["boom"] + angle["stick"]
    rocker, bucket = stick + angle["rocker"], stick + angle["bucket"]
    link = rocker + angle["link"]
    point = {"boom": np.array([0.10, 1.90])}
    point["stick"] = point["boom"] + turned(boom, (5.7, 0.0))
    for name, place in (("rocker", (2.495, 0.03)), ("bucket", (2.925, 0.0)), ("bucket_cylinder_start", (0.35, 0.45))):
        point[name] = point["stick"] + turned(stick, place)
    point["knee"] = point["rocker"] + turned(rocker, (0.60, 0.0))
    point["eye"] = point["bucket"] + turned(bucket, (-0.132, 0.461))
    assert point["knee"] + turned(link, (0.62, 0.0)) == pytest.approx(point["eye"], abs=1e-9)
    point["boom_cylinder_start"], point["boom_cylinder_end"] = (
        np.array([0.62, 1.28]),
        point["boom"] + turned(boom, (2.40, 0.62)),
    )
    point["stick_cylinder_start"] = point["boom"] + turned(boom, (3.05, 1.00))
    point["stick_cylinder_end"] = point["stick"] + turned(stick, (-0.75, 0.45))
    point["bucket_cylinder_end"] = point["knee"]
    for name, place, by in (
        ("boom", (2.6, 0.45), boom),
        ("stick", (1.0, 0.20), stick),
        ("bucket", (0.70, 0.10), bucket),
        ("rocker", (0.30, 0.0), rocker),
    ):
        point[f"{name}_centre"] = point[name] + turned(by, place)
    point["link_centre"] = point["knee"] + turned(link, (0.31, 0.0))
    for name, force in statics(point).items():
        assert found[f"circuit.{name}.force"] == pytest.approx(force, rel=1e-8), name
        assert found[f"machine.{name}.velocity"] == 0.0
    assert abs(boom - radians(10.0)) < radians(2.0)
    assert abs(angle["stick"] - radians(-60.0)) < radians(2.0)
    if horizon is None:
        assert not found.moving
        for name, sign in (("boom", 1.0), ("stick", -1.0), ("bucket", -1.0)):
            beyond = sign * found[f"circuit.{name}_section.spool"] - 0.05
            assert 0.0 < beyond < 5e-3, name
            command = 6.0 * found[f"{name}_controller.error"]
            assert found[f"circuit.{name}_section.spool"] == pytest.approx(command, abs=1e-9)
    else:
        assert found.stable
        assert max(abs(rate) for rate in found.moving.values()) < 5e4  # Pa/s, by leakage over pistons
