"""A plant of ours with a controller of somebody else's: two FMUs, coupled by the master.

Run this file. The controller is made by pythonfmu, from the text below; it stands for any FMU that you are given. It
knows nothing of the plant but the length that it measures, and holds its command between communication points.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import mbsfmu

CONTROLLER = '''
from pythonfmu import Fmi2Causality, Fmi2Slave, Fmi2Variability, Real


class LengthController(Fmi2Slave):
    """A proportional controller of a length, which drives a valve by 10 V at most."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.wanted, self.gain = 0.0, 200.0
        self.length, self.command = 0.0, 0.0
        for name in ("wanted", "gain"):
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.tunable))
        self.register_variable(Real("length", causality=Fmi2Causality.input))
        self.register_variable(Real("command", causality=Fmi2Causality.output))

    def do_step(self, current_time, step_size):
        self.command = max(-10.0, min(10.0, self.gain * (self.wanted - self.length)))
        return True
'''


def foreign_unit(folder: Path) -> Path:
    """Return the controller's FMU."""
    (folder / "length_controller.py").write_text(CONTROLLER)
    subprocess.run(
        [sys.executable, "-m", "pythonfmu", "build", "-f", "length_controller.py"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "LengthController.fmu"


def run(folder: Path, wanted: float = 0.05, step: float = 2e-3, stop: float = 4.0) -> mbsfmu.CosimulationResult:
    """Return a coupled run in which the four-bar's cylinder is to be longer by some m."""
    model = mbsfmu.models.four_bar()
    start = model.simulation().run(stop=1e-3)["cylinder.length"][0]
    (plant,) = mbsfmu.export(model, folder, layout="monolithic")
    return mbsfmu.cosimulate(
        [plant, foreign_unit(folder)],
        connections=[
            "four-bar.cylinder.length=LengthController.length",
            "LengthController.command=four-bar.valve.command",
        ],
        parameters={"LengthController.wanted": start + wanted},
        step=step,
        stop=stop,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(folder))
    length = result["four-bar.cylinder.length"]
    print(f"the cylinder is longer by {1e3 * (length[-1] - length[0]):.2f} mm, 50 mm are wanted")
