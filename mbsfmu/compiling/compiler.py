"""The C compiler of this machine, or zig for the platforms of other FMUs."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import logging
import os
import platform as machines
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept
from mbsfmu.compiling.compilation import CODE, FLAGS, LINK, PROGRAM, SOURCES, Compilation, CompilerError
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


SWITCH = "MBSFMU_COMPILED"
"""Environment variable: with 0, nothing of what this process runs itself is compiled."""
OPTIMIZATION = "MBSFMU_OPTIMIZATION"
"""Environment variable: how much all that is compiled is optimized, 0 to 3, in place of what suits each file: with 0,
large models are compiled in a third of the time, runs in process have tables of operations, which are sooner made, and
steps take several times as long. With `suited`, runs in process take what suits from their first step on, however long
that takes to compile."""
_SUITED = "suited"
_OBJECT = ".o"
_LEVELS = ("0", "1", "2", "3")
_OF_ZIG = {"-Og": "-Os"}
"""What zig takes in place of a level: with -Og it does not optimize, and code is twice as large."""
_LOGGER = logging.getLogger(__name__)
_LEVEL_INSIDE: ContextVar[str] = ContextVar("level", default="")
"""The level where the environment variable says none."""


class NoCompilerError(InputError):
    """There is no compiler for a platform."""


def is_compiled() -> bool:
    """Return whether this process compiles the code that it runs itself.

    Raises
    ------
    InputError
        When the environment variable says neither 0 nor 1.
    """
    if (said := os.environ.get(SWITCH) or "1") not in ("0", "1"):
        raise InputError(f"the environment variable {SWITCH} is '{said}'; it may be 0 or 1")
    return said == "1"


def has_compiler() -> bool:
    """Return whether FMUs can be compiled for this machine."""
    return _system_compiler() is not None or _zig() is not None


def kept_library(key: str, flags: tuple[str, ...] = ()) -> Path | None:
    """Return the cached library of this machine for flags and a key, if it exists.

    It must be of the compiler that is here; where none is, one that another compiler made will do.
    """
    if SOURCES in os.environ:
        return None
    own = _own_compiler()
    return kept.find(_content(key, None), _maker((*own, *flags), _level()) if own else None, _suffix(None))


def compile_library(
    sources: Mapping[str, str],
    mains: Mapping[str, str],
    platform: str | None,
    *,
    key: str | None = None,
    portable: bool = True,
    flags: tuple[str, ...] = (),
    as_given: bool = False,
    program: bool = False,
) -> Path:
    """Compile sources in parallel to a shared library, or return the cached one.

    Parameters
    ----------
    sources
        Texts by file name, those that are included being among them.
    mains
        Names of the files to compile, with how much each is optimized, such as `-O2`.
    platform
        A key of `PLATFORMS`; None for this very machine, whatever it is.
    key
        Name of what it is made from; made from the content by default.
    portable
        Whether it has to run on other machines too: zig, where it is there, is taken before this machine's compiler,
        unless the environment variable CC names that one.
    flags
        What the compiler is told besides.
    as_given
        Whether the files are optimized as `mains` says, whatever the environment variable `OPTIMIZATION` says.
    program
        Whether a program for Windows is made of them, in place of a library.

    Raises
    ------
    InputError
        When there is no such platform, or the size that the folder of kept libraries may have is no size.
    NoCompilerError
        When there is no compiler for the platform, and nothing kept.
    CompilerError
        When the compiler does not do it.
    """
    key = key or content_key(FLAGS, portable, sorted(mains.items()), sorted(sources.items()))
    content, suffix = _content(key, platform), PROGRAM if program else _suffix(platform)
    try:
        command = [*_command(platform, portable), *flags]
    except NoCompilerError:
        if found := kept.find(content, None, suffix):
            return found
        raise
    if SOURCES in os.environ:
        command = [*command, "-g"]
    maker = _maker(tuple(command), _level())
    if SOURCES not in os.environ and (found := kept.find(content, maker, suffix)):
        return found
    size = sum(map(len, sources.values())) / 1e3
    place = platform or "this machine"
    later = "; what comes of it is kept for the next time" if kept.keeps() else ""
    _LOGGER.info("compiling %.0f kB of C for %s%s", size, place, later)
    levels = dict(mains) if as_given else {main: _level() or suited for main, suited in mains.items()}
    if "ziglang" in command:
        levels = {main: _OF_ZIG.get(level, level) for main, level in levels.items()}
    return kept.store(content, maker, suffix, _compiled(Compilation(tuple(command), sources, levels, suffix)))


def _compiled(compilation: Compilation) -> bytes:
    """Return a library; files that two have in common, as the steps of one model in two FMUs, are compiled once."""
    if SOURCES in os.environ:
        return compilation.library(os.environ[SOURCES])[0]
    names = {
        main: (_content(compilation.content(main), None), _maker(compilation.command, level), _OBJECT)
        for main, level in compilation.levels.items()
    }
    found = {main: path for main, name in names.items() if (path := kept.find(*name))}
    library, new = replace(compilation, made={main: path.read_bytes() for main, path in found.items()}).library()
    for main, content in new.items():
        kept.store(*names[main], content)
    return library


# -- names ------------------------------------------------------------------------------------------------------------


def _content(key: str, platform: str | None) -> str:
    """Return the name of a compilation from a key for a platform."""
    return content_key(key, PLATFORMS[platform].target if platform in PLATFORMS else host())


def _suffix(platform: str | None) -> str:
    if platform in PLATFORMS:
        return PLATFORMS[platform].suffix
    return {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")


def unoptimized() -> AbstractContextManager[None]:
    """Compile without optimization inside, for what is hardly run, unless the environment variable says a level."""
    return _with_level(_LEVELS[0])


def optimized() -> AbstractContextManager[None]:
    """Let runs inside take optimized code from their first step on, for what tells what steps cost."""
    return _with_level(_SUITED)


@contextmanager
def _with_level(level: str) -> Iterator[None]:
    token = _LEVEL_INSIDE.set(level)
    try:
        yield
    finally:
        _LEVEL_INSIDE.reset(token)


def is_level_given() -> bool:
    """Return whether the optimization level is given."""
    return bool(os.environ.get(OPTIMIZATION) or _LEVEL_INSIDE.get()) or SOURCES in os.environ


def is_unoptimized() -> bool:
    """Return whether nothing is to be optimized, so that all is made soonest."""
    return _level() == f"-O{_LEVELS[0]}"


def _level() -> str | None:
    """Return the given optimization level of all files.

    Raises
    ------
    CompilerError
        When there is no such level.
    """
    given = os.environ.get(OPTIMIZATION) or _LEVEL_INSIDE.get()
    if given in ("", _SUITED):
        return None
    if given not in _LEVELS:
        raise CompilerError(f"{OPTIMIZATION} is '{given}'; it must be {', '.join(_LEVELS)} or {_SUITED}")
    return f"-O{given}"


@functools.cache
def _maker(command: tuple[str, ...], level: str | None) -> str:
    """Return a name for a compiler in its version, with its options and the flags that all code gets."""
    if "ziglang" in command:
        version = importlib.metadata.version("ziglang")
    else:
        try:
            call = [*command, "--version"]
            version = subprocess.run(call, capture_output=True, text=True, errors="replace", check=False).stdout
        except OSError as error:
            version = str(error)
    return content_key(command, version, FLAGS, level, sorted(LINK.items()), sorted(CODE.items()))


# -- compilers --------------------------------------------------------------------------------------------------------


def _own_compiler() -> tuple[str, ...] | None:
    """Return the compiler command for this machine, if there is one."""
    try:
        return tuple(_command(None, portable=False))
    except NoCompilerError:
        return None


def _command(platform: str | None, portable: bool) -> list[str]:
    if platform is not None and platform not in PLATFORMS:
        raise InputError(f"there is no platform '{platform}'; {closest_match(platform, PLATFORMS)}")
    is_host = platform is None or platform in host_platforms()
    own = _system_compiler() if is_host else None
    if own and (not portable or _is_named(own)):
        return own
    if zig := _zig():
        return zig if platform is None else [*zig, "-target", PLATFORMS[platform].target]
    if not is_host:
        raise NoCompilerError(
            f"for {platform} the cross-compiler of the extra 'cross' is needed: pip install 'mbsfmu[cross]'"
        )
    if own:
        return own
    raise NoCompilerError(
        "native FMUs need a C compiler: install one (Debian: apt install gcc) or pip install 'mbsfmu[cross]'; "
        "--backend python needs none"
    )


def _system_compiler() -> list[str] | None:
    """Return how this machine's compiler is called; the environment variable CC may hold options too."""
    wished = _wished()
    candidates = (wished, ["cc"], ["gcc"], ["clang"])
    found = next(([path, *call[1:]] for call in candidates if call and (path := shutil.which(call[0]))), None)
    if candidates[0] and not shutil.which(candidates[0][0]):
        _warn_missing(wished[0], found[0] if found else "")
    return found


def _wished() -> list[str]:
    """Return the call that the environment variable CC holds; nothing without it."""
    text = os.environ.get("CC", "")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"the environment variable CC is {text}, which is no call of a compiler: {str(error).lower()}"
        ) from None


def _is_named(compiler: Sequence[str]) -> bool:
    """Return whether a compiler of this machine is the one in CC."""
    named = _wished()
    return bool(named) and shutil.which(named[0]) == compiler[0]


@functools.cache
def _warn_missing(wished: str, found: str) -> None:
    """Warn once that the compiler in CC does not exist, and name the replacement."""
    instead = f"{found} is taken" if found else "no other is found"
    _LOGGER.warning("the C compiler %s, which the environment variable CC names, is not there; %s", wished, instead)


def _zig() -> list[str] | None:
    if importlib.util.find_spec("ziglang") is None:
        return None
    # Without the flag zig adds checks of undefined behaviour, and their runtime, to code that is hardly optimized.
    return [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]
