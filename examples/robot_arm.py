"""A robot arm from a URDF file with a PID controller on each joint, as one FMU.

Run `mbsfmu export examples/robot_arm.py:robot_arm`, or this file.
"""

import tempfile
from pathlib import Path

import fmpy

import mbsfmu
from mbsfmu import CoupledModel, Mechanism, PidController, PointSensor, RestToRestSignal, mechanism_from_urdf

ARM = Path(__file__).with_name("arm.urdf")
# Gains of each joint in N m/rad (N/m), per s, and times s; limits of the drives in N m (N), from the file.
GAINS = {
    "shoulder_pan": (800.0, 800.0, 80.0, 150.0),
    "shoulder_lift": (1500.0, 2000.0, 150.0, 150.0),
    "elbow": (800.0, 1000.0, 60.0, 150.0),
    "wrist_1_joint": (100.0, 150.0, 3.0, 28.0),
    "wrist_2_joint": (60.0, 80.0, 1.5, 28.0),
    "wrist_3_joint": (40.0, 60.0, 0.6, 28.0),
    "left": (4000.0, 4000.0, 40.0, 20.0),
}
START = {"shoulder_lift": -0.8, "elbow": 1.2, "wrist_1_joint": 0.4}
TARGET = {
    "shoulder_pan": 1.2,
    "shoulder_lift": 0.1,
    "elbow": 0.5,
    "wrist_1_joint": -0.3,
    "wrist_2_joint": 0.8,
    "left": 0.03,
}


def robot_arm() -> CoupledModel:
    """Return the arm, which moves from its start to its target between 0.5 and 2.5 s."""
    arm = mechanism_from_urdf(ARM, start=START)
    tip = PointSensor(name="tip", point="wrist_3.tool")
    arm = Mechanism.from_dict({**arm.to_dict(), "sensors": [tip.to_dict()]})
    bodies = {joint.name: joint.child.partition(".")[0] for joint in arm.joints}
    controllers, connections, signals = {}, [], {}
    for joint, (proportional, integral, derivative, limit) in GAINS.items():
        unit, effort, coordinate = ("m", "force", "displacement") if joint == "left" else ("rad", "torque", "angle")
        controllers[f"{joint}_controller"] = PidController(
            measured_unit=unit,
            command_unit="N" if joint == "left" else "N.m",
            proportional=proportional,
            integral=integral,
            derivative=derivative,
            filter_time=2e-3,
            minimum=-limit,
            maximum=limit,
        )
        connections += [
            (f"arm.{bodies[joint]}.{coordinate}", f"{joint}_controller.measured"),
            (f"{joint}_controller.command", f"arm.{joint}_drive.{effort}"),
        ]
        begin, end = START.get(joint, 0.0), TARGET.get(joint, START.get(joint, 0.0))
        signals[f"{joint}_controller.setpoint"] = RestToRestSignal(times=(0.5, 2.5), values=(begin, end))
    return CoupledModel(
        name="robot-arm",
        description="robot arm from URDF with PID controllers",
        systems={"arm": arm, **controllers},
        connections=connections,
        signals=signals,
        stop_time=4.0,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (unit,) = mbsfmu.export(robot_arm(), folder, layout="monolithic")
        result = fmpy.simulate_fmu(str(unit), stop_time=4.0, step_size=1e-3, output_interval=0.01)
    for joint in ("shoulder_pan", "elbow"):
        print(f"{joint}: {result[f'{joint}_controller.error'][-1]:.5f} rad off its target after 4 s")
