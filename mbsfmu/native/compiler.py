"""The C compiler: found on this machine, or zig for other platforms; what it made is kept by content."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mbsfmu.data import meant
from mbsfmu.errors import InputError
from mbsfmu.identity import content_key

# No contraction to fused operations: every compiler then rounds alike.
_FLAGS = ("-std=c99", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")


@dataclass(frozen=True)
class Platform:
    """A platform of FMI 2.0.

    Attributes
    ----------
    suffix
        Of its libraries.
    target
        What zig calls it; linux with the oldest C library that is promised.
    """

    suffix: str
    target: str


PLATFORMS = {
    "linux64": Platform(".so", "x86_64-linux-gnu.2.17"),
    "win64": Platform(".dll", "x86_64-windows-gnu"),
    "darwin64": Platform(".dylib", "x86_64-macos"),
}


def host_platform() -> str:
    """Return the platform of this machine."""
    if sys.platform == "win32":
        return "win64"
    return "darwin64" if sys.platform == "darwin" else "linux64"


def has_compiler() -> bool:
    """Tell whether units can be compiled for this machine."""
    return _system_compiler() is not None or _zig() is not None


def kept_library(key: str, platform: str) -> Path:
    """Return where a library is kept; it may not be there."""
    return _cache() / f"{key}{PLATFORMS[platform].suffix}"


def compile_library(
    sources: Mapping[str, str],
    mains: Mapping[str, str],
    platform: str,
    *,
    key: str | None = None,
    portable: bool = True,
) -> Path:
    """Compile sources, all at the same time, into one shared library; keep it, and use it when it is there.

    Parameters
    ----------
    sources
        Texts by file name, those that are included being among them.
    mains
        Names of the files to compile, with how much each is optimized, such as `-O2`.
    platform
        A key of `PLATFORMS`.
    key
        Name to keep it under; made from the content by default.
    portable
        Whether it has to run on other machines too: zig, where it is there, is taken before this machine's compiler.

    Raises
    ------
    InputError
        When there is no such platform or no compiler for it.
    RuntimeError
        When the compiler refuses the sources; that is an error of this toolkit.
    """
    command = _command(platform, portable)
    kept = kept_library(key or content_key(command, _FLAGS, sorted(mains.items()), sorted(sources.items())), platform)
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(prefix="mbsfmu-") as folder:
        for name, text in sources.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        objects = [f"{main}.o" for main in mains]
        calls = [[*command, *_FLAGS, level, "-c", main, "-o", f"{main}.o"] for main, level in mains.items()]
        with ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(lambda call: _run(call, folder), calls))
        library = f"unit{PLATFORMS[platform].suffix}"
        link = {"win64": ("-s",), "linux64": ("-s", "-lm"), "darwin64": ("-lm",)}[platform]
        _run([*command, "-shared", *objects, "-o", library, *link], folder)
        content = (Path(folder) / library).read_bytes()
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_suffix(f".{os.getpid()}.part")
    partial.write_bytes(content)
    partial.replace(kept)
    return kept


def _run(call: Sequence[str], folder: str) -> None:
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the C compiler refuses the generated sources:\n{done.stderr}")


def _command(platform: str, portable: bool) -> list[str]:
    if platform not in PLATFORMS:
        raise InputError(f"there is no platform '{platform}'; {meant(platform, PLATFORMS)}")
    own = _system_compiler() if platform == host_platform() else None
    if own and not portable:
        return [own]
    if zig := _zig():
        return [*zig, "-target", PLATFORMS[platform].target]
    if platform != host_platform():
        raise InputError(
            f"for {platform} the cross-compiler of the extra 'cross' is needed: pip install 'mbsfmu[cross]'"
        )
    if own:
        return [own]
    raise InputError(
        "native units need a C compiler: install one (Debian: apt install gcc) or pip install 'mbsfmu[cross]'; "
        "--backend python needs none"
    )


def _system_compiler() -> str | None:
    candidates = (os.environ.get("CC"), "cc", "gcc", "clang")
    return next((path for name in candidates if name and (path := shutil.which(name))), None)


def _zig() -> list[str] | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    return [sys.executable, "-m", "ziglang", "cc"]


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(root) / "mbsfmu"
