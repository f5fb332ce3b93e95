"""An FMU for model exchange that is not ours, of both versions of FMI, built from source."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from foreign_fmus import compiler

from mbsfmu.cosim.fmus.archive import PLATFORMS

_NAMES = (
    "x", "v", "rate_x", "rate_v", "force", "kick", "gravity", "stiffness", "damping", "swing", "restitution", "period",
    "limit", "last", "fault", "ticks", "bounces", "wraps", "resting", "acceleration", "nominal", "events",
)  # fmt: skip
_STARTS = {"restitution": "-1", "limit": "1e300", "last": "1e300", "nominal": "1"}
_OUTPUTS = ("x", "v", "ticks", "bounces", "wraps", "resting", "acceleration", "events")
_FLAGS = {
    2: 'canGetAndSetFMUstate="true" canSerializeFMUstate="true" providesDirectionalDerivative="true"',
    3: 'canGetAndSetFMUState="true" canSerializeFMUState="true" providesDirectionalDerivatives="true" '
    'needsCompletedIntegratorStep="true"',
}
DISCARDS, FAILS, NEVER_CONVERGES, NOT_FINITE, HANGS, CRASHES, CHATTERS = range(1, 8)
"""What `fault` makes it do: the first and the fourth where x is beyond 2, the others after half a second."""


def build_jumper(
    version: int, folder: Path, name: str = "jumper", *, both: bool = False, flags: str | None = None
) -> Path:
    """Compile and pack the FMU for a version of FMI.

    Parameters
    ----------
    version
        2 or 3.
    folder, name
        Where the file goes, and what it is called.
    both
        Whether it says that it is for co-simulation too, which it is not.
    flags
        Capabilities in its description; all by default.
    """
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    library = folder / f"jumper{version}{suffix}"
    if not library.exists():
        warnings = ["-Wall", "-Wextra", "-Werror"]
        command = [str(compiler()), "-std=gnu99", f"-DVERSION={version}", *warnings, "-O1", "-fPIC", "-shared"]
        source = Path(__file__).with_name("jumper.c")
        subprocess.run([*command, "-fvisibility=hidden", str(source), "-o", str(library), "-lm"], check=True)
    description = describe_jumper(version, both=both, flags=flags)
    path = folder / f"{name}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description)
        archive.write(library, f"binaries/{PLATFORMS[f'{version}.0']}/jumper{suffix}")
    return path


def describe_jumper(version: int, *, both: bool = False, flags: str | None = None) -> str:
    """Return the description of the unit; parameters as for `build_jumper`."""
    flags = _FLAGS[version] if flags is None else flags
    interfaces = f'<ModelExchange modelIdentifier="jumper" {flags}/>'
    if both:
        interfaces += '<CoSimulation modelIdentifier="jumper"/>'
    return (_description_2 if version == 2 else _description_3)(interfaces)


def _attributes(name: str) -> dict[str, str]:
    if name in ("force", "kick"):
        return {"causality": "input", "variability": "continuous" if name == "force" else "discrete"}
    if name in ("rate_x", "rate_v"):
        return {"causality": "local", "variability": "continuous"}
    if name in _OUTPUTS:
        continuous = name in ("x", "v", "acceleration")
        initial = "calculated" if name == "acceleration" else "exact"
        return {"causality": "output", "variability": "continuous" if continuous else "discrete", "initial": initial}
    return {"causality": "parameter", "variability": "fixed", "initial": "exact"}


def _start(name: str) -> dict[str, str]:
    calculated = name in ("rate_x", "rate_v", "acceleration")
    return {} if calculated else {"start": _STARTS.get(name, "0")}


def _written(attributes: dict[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())


def _description_2(interfaces: str) -> str:
    variables = ""
    for reference, name in enumerate(_NAMES):
        real = {**_start(name), **({"derivative": str(_NAMES.index(name[-1]) + 1)} if name.startswith("rate_") else {})}
        variables += (
            f'<ScalarVariable name="{name}" valueReference="{reference}"{_written(_attributes(name))}>'
            f"<Real{_written(real)}/></ScalarVariable>"
        )
    outputs = "".join(
        f'<Unknown index="{_NAMES.index(name) + 1}" dependencies="{"1 2 5 6" if name == "acceleration" else ""}"/>'
        for name in _OUTPUTS
    )
    rates = '<Unknown index="3" dependencies="2"/><Unknown index="4" dependencies="1 2 5 6"/>'
    initial = '<Unknown index="3"/><Unknown index="4"/><Unknown index="20"/>'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<fmiModelDescription fmiVersion="2.0" modelName="jumper" guid="{jumper}" numberOfEventIndicators="1">'
        f'{interfaces}<DefaultExperiment startTime="0" stopTime="3" stepSize="0.01"/>'
        f"<ModelVariables>{variables}</ModelVariables><ModelStructure><Outputs>{outputs}</Outputs>"
        f"<Derivatives>{rates}</Derivatives><InitialUnknowns>{initial}</InitialUnknowns></ModelStructure>"
        "</fmiModelDescription>"
    )


def _description_3(interfaces: str) -> str:
    variables = '<Float64 name="time" valueReference="100" causality="independent" variability="continuous"/>'
    for reference, name in enumerate(_NAMES):
        real = {**_start(name), **({"derivative": str(_NAMES.index(name[-1]))} if name.startswith("rate_") else {})}
        variables += f'<Float64 name="{name}" valueReference="{reference}"{_written({**_attributes(name), **real})}/>'
    outputs = "".join(
        f'<Output valueReference="{_NAMES.index(name)}" dependencies="{"0 1 4 5" if name == "acceleration" else ""}"/>'
        for name in _OUTPUTS
    )
    rates = "".join(
        f'<ContinuousStateDerivative valueReference="{reference}" dependencies="{needed}"/>'
        for reference, needed in ((2, "1"), (3, "0 1 4 5"))
    )
    initial = "".join(f'<InitialUnknown valueReference="{reference}"/>' for reference in (2, 3, 19))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<fmiModelDescription fmiVersion="3.0" modelName="jumper" instantiationToken="{jumper}">'
        f'{interfaces}<DefaultExperiment startTime="0" stopTime="3" stepSize="0.01"/>'
        f"<ModelVariables>{variables}</ModelVariables><ModelStructure>{outputs}{rates}{initial}"
        '<EventIndicator valueReference="0"/></ModelStructure></fmiModelDescription>'
    )
