"""A Stewart platform: six legs with controllers of their lengths carry a plate through heave, roll and pitch.

Run `mbsfmu simulate examples/stewart_platform.py:stewart_platform`, or this file. The legs have no mass here; electric
or hydraulic ones with dynamics of their own would be systems beside the mechanism.
"""

from math import cos, pi, radians, sin

import numpy as np
from scipy.spatial.transform import Rotation

from mbsfmu import Actuator, CoupledModel, Free, Mechanism, PidController, PointSensor, RigidBody, SplineSignal

HEIGHT = 1.3
BASE_RADIUS, PLATE_RADIUS = 1.2, 0.8


def corner(leg: int, radius: float, aside: float) -> tuple[float, float, float]:
    """Return where a leg ends: two and two beside each other, at three corners of a circle."""
    angle = radians(120.0 * (leg // 2) + (aside if leg % 2 else -aside))
    return radius * cos(angle), 0.0, radius * sin(angle)


BASE = {f"base_{leg}": corner(leg, BASE_RADIUS, 12.0) for leg in range(6)}
PLATE = {f"joint_{leg}": corner(leg, PLATE_RADIUS, 48.0) for leg in range(6)}


def wanted(time: float) -> tuple[np.ndarray, Rotation]:
    """Return where the plate is to be, and how it is to be turned: motions that begin slowly from rest."""
    begun = min(time / 2.0, 1.0)
    rise = begun**3 * (10.0 - 15.0 * begun + 6.0 * begun**2)
    motions = ((0.1, 0.5), (0.15, 0.4), (0.1, 0.3))  # sizes in m or rad, frequencies in Hz
    heave, roll, pitch = (size * rise * sin(2.0 * pi * rate * time) for size, rate in motions)
    return np.array([0.0, HEIGHT + heave, 0.0]), Rotation.from_euler("xz", [roll, pitch])


def length(leg: int, time: float) -> float:
    """Return how long a leg is where the plate is as wanted."""
    position, rotation = wanted(time)
    return float(np.linalg.norm(position + rotation.apply(PLATE[f"joint_{leg}"]) - BASE[f"base_{leg}"]))


def stewart_platform() -> CoupledModel:
    """Return the platform: six degrees of freedom, six legs, six controllers."""
    platform = Mechanism(
        ground={"origin": (0.0, 0.0, 0.0), **BASE},
        bodies=(RigidBody(name="plate", mass=400.0, inertia=(60.0, 110.0, 60.0), points=PLATE),),
        joints=(Free(name="motion", parent="ground.origin", child="plate.origin", displacement=(0.0, HEIGHT, 0.0)),),
        forces=tuple(
            Actuator(name=f"leg_{leg}", start=f"ground.base_{leg}", end=f"plate.joint_{leg}") for leg in range(6)
        ),
        sensors=(PointSensor(name="pose", point="plate.origin"),),
    )
    controller = PidController(
        measured_unit="m",
        command_unit="N",
        proportional=4e5,
        integral=1e6,
        derivative=3e4,
        filter_time=2e-3,
        minimum=-2e4,
        maximum=2e4,
    )
    connections, signals = [], {}
    for leg in range(6):
        connections += [
            (f"platform.leg_{leg}.length", f"controller_{leg}.measured"),
            (f"controller_{leg}.command", f"platform.leg_{leg}.force"),
            # Each controller begins with the force that holds the plate.
            (f"platform.leg_{leg}.static_force", f"controller_{leg}.initial_integral"),
        ]
        times = tuple(0.05 * index for index in range(201))
        signals[f"controller_{leg}.setpoint"] = SplineSignal(
            times=times, values=tuple(length(leg, time) for time in times)
        )
    return CoupledModel(
        name="stewart-platform",
        description="platform on six legs with controllers",
        systems={"platform": platform, **{f"controller_{leg}": controller for leg in range(6)}},
        connections=connections,
        signals=signals,
    )


if __name__ == "__main__":
    result = stewart_platform().simulation().run()
    heights = [wanted(time)[0][1] for time in result.time]
    print(f"the plate is {1e3 * max(abs(result['pose.position.y'] - heights)):.2f} mm off its height at most")
