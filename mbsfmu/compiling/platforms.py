"""The versions of the FMI, and the names that they have for the platforms of units."""

from __future__ import annotations

import platform as machines
import sys
from dataclasses import dataclass
from typing import Literal, get_args

from mbsfmu.base.errors import InputError
from mbsfmu.modelling import closest_match

Fmi = Literal[2, 3]
"""The number that a version of the FMI goes by: FMI 2.0, FMI 3.0."""
VERSIONS: tuple[Fmi, ...] = get_args(Fmi)
Interface = Literal["cs", "me"]
"""What an FMU is for: co-simulation, model exchange."""
INTERFACES: tuple[Interface, ...] = get_args(Interface)
Clocks = Literal["none", "periodic", "triggered"]
"""Whether an FMU has clocks, and which: `none`, updates are events of its own; `periodic`, the host sets a clock at its
ticks; `triggered`, the host sets it whenever it wants to."""
CLOCKS: tuple[Clocks, ...] = get_args(Clocks)


@dataclass(frozen=True)
class Platform:
    """A platform of a version of the FMI.

    Attributes
    ----------
    fmi
        The version that has this name for it.
    suffix
        Of its libraries.
    target
        What zig calls it; linux with the oldest C library that is promised.
    """

    fmi: Fmi
    suffix: str
    target: str


WEBASSEMBLY = ".wasm"
"""How names of WebAssembly modules end."""
PLATFORMS = {
    "linux64": Platform(2, ".so", "x86_64-linux-gnu.2.17"),
    "win64": Platform(2, ".dll", "x86_64-windows-gnu"),
    "darwin64": Platform(2, ".dylib", "x86_64-macos"),
    "x86_64-linux": Platform(3, ".so", "x86_64-linux-gnu.2.17"),
    "x86_64-windows": Platform(3, ".dll", "x86_64-windows-gnu"),
    "x86_64-darwin": Platform(3, ".dylib", "x86_64-macos"),
    "aarch64-linux": Platform(3, ".so", "aarch64-linux-gnu.2.17"),
    "aarch64-darwin": Platform(3, ".dylib", "aarch64-macos"),
    "wasm32": Platform(2, WEBASSEMBLY, "wasm32-wasi"),
    "wasm32-wasi": Platform(3, WEBASSEMBLY, "wasm32-wasi"),
}
"""By the names of the folders that importers look into. WebAssembly has no name in FMI 2.0 and 3.0: `wasm32` follows
their pattern, machine and word length, and `wasm32-wasi` machine and system."""
_SAME = {
    "linux64": "x86_64-linux",
    "win64": "x86_64-windows",
    "darwin64": "x86_64-darwin",
    "wasm32": "wasm32-wasi",
}
_NAMES = {
    ("linux", "x86_64"): ("linux64", "x86_64-linux"),
    ("linux", "amd64"): ("linux64", "x86_64-linux"),
    ("linux", "aarch64"): ("aarch64-linux",),
    ("linux", "arm64"): ("aarch64-linux",),
    ("win32", "amd64"): ("win64", "x86_64-windows"),
    ("win32", "x86_64"): ("win64", "x86_64-windows"),
    ("darwin", "x86_64"): ("darwin64", "x86_64-darwin"),
    ("darwin", "arm64"): ("darwin64", "aarch64-darwin"),  # as importers have it: FMI 2.0 has one name for both machines
}


def platform_names(fmi: Fmi) -> tuple[str, ...]:
    """Return the names of all platforms of a version of the FMI."""
    return tuple(name for name, platform in PLATFORMS.items() if platform.fmi == fmi)


def platform_named(name: str, fmi: Fmi) -> str:
    """Return the name that a version of the FMI has for a platform; FMI 3.0 knows those of FMI 2.0 as well.

    Raises
    ------
    InputError
        When it has none.
    """
    found = _SAME.get(name, name) if fmi == 3 else name
    if found in platform_names(fmi):
        return found
    if found in PLATFORMS:
        raise InputError(f"FMI {fmi}.0 has no platform '{name}', but {', '.join(platform_names(fmi))}")
    raise InputError(f"there is no platform '{name}'; {closest_match(name, platform_names(fmi))}")


def same_platform(name: str, fmi: Fmi) -> str | None:
    """Return the name of a platform in a version of FMI from that in another version; None if unknown."""
    target = PLATFORMS[name].target
    return next((each for each in platform_names(fmi) if PLATFORMS[each].target == target), None)


def host() -> tuple[str, str]:
    """Return system and machine of this process."""
    return sys.platform, machines.machine().lower()


def host_platforms() -> tuple[str, ...]:
    """Return all names of the platform of this machine; none where no version of the FMI has one."""
    return _NAMES.get(host(), ()) if sys.maxsize > 2**32 else ()


def host_platform(fmi: Fmi = 2) -> str:
    """Return the platform of this machine.

    Raises
    ------
    InputError
        When that version of the FMI has no name for it that importers on other machines would not take for theirs: on
        linux, what is in `linux64` is loaded on x86-64.
    """
    name = next((each for each in host_platforms() if PLATFORMS[each].fmi == fmi), None)
    if name is None:
        system, machine = host()
        raise InputError(
            f"FMI {fmi}.0 has no platform for {system} on {machine}, {64 if sys.maxsize > 2**32 else 32} bits: export "
            f"for {', '.join(platform_names(fmi))}, which needs the extra 'cross', or with the backend 'python'"
        )
    return name
