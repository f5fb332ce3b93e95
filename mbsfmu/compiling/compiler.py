"""The C compiler of this machine, or zig for other platforms, with a cache of libraries by content."""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import logging
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path

from mbsfmu.base.errors import InputError
from mbsfmu.base.identity import content_key
from mbsfmu.compiling import kept
from mbsfmu.compiling.compilation import CODE, FLAGS, LINK, PROGRAM, SOURCES, Compilation, CompilerError
from mbsfmu.compiling.platforms import PLATFORMS, host, host_platforms
from mbsfmu.modelling import closest_match

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
