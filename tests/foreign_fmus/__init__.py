"""Co-simulation FMUs of FMI 1.0 to 3.0 that are not ours, built from source: small ones in C and for pythonfmu."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

from lxml import etree
from pythonfmu import FmuBuilder
from runtime_sources import INCLUDES

from mbsfmu.cosim.fmus.archive import PLATFORMS
from mbsfmu.cosim.fmus.wine.bridge import WINDOWS

SOURCES = Path(__file__).parent
C_FMUS = tuple(sorted(path.stem for path in SOURCES.glob("*.xml")))


def compiler() -> str | None:
    """Return the C compiler of this machine."""
    return next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)


def has_wine() -> bool:
    """Return whether FMUs for Windows can be built and run here."""
    return sys.platform == "linux" and shutil.which("wine") is not None and find_spec("ziglang") is not None


def build_c_unit(name: str, folder: Path, *, windows: bool = False) -> Path:
    """Compile and pack a unit of this folder, for this machine or with zig for Windows alone."""
    version = str(etree.parse(SOURCES / f"{name}.xml").getroot().get("fmiVersion"))
    platform = WINDOWS if windows else PLATFORMS[version]
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get("win32" if windows else sys.platform, ".so")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-gnu", "-fno-sanitize=undefined"]
    command = [*(zig if windows else [str(compiler())]), "-std=c99", "-Wall", "-Wextra", "-Wno-type-limits", "-Werror"]
    command += ["-O1", "-fPIC", "-shared", "-fvisibility=hidden", *INCLUDES, str(SOURCES / f"{name}.c")]
    library = folder / f"{name}{suffix}"
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    path = folder / f"{name}.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(SOURCES / f"{name}.xml", "modelDescription.xml")
        archive.write(library, f"binaries/{platform}/{library.name}")
    return path


def build_python_unit(name: str, folder: Path) -> Path:
    """Pack a pythonfmu slave of this folder under its own name."""
    script = shutil.copy(SOURCES / f"{name}.py", folder)
    built = Path(FmuBuilder.build_FMU(script, dest=folder))
    return built.replace(folder / f"{name}.fmu")
