"""One compilation: C files that are compiled at the same time, and linked into a shared library."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mbsfmu.errors import SimulationError
from mbsfmu.files import reason
from mbsfmu.identity import content_key

# No contraction to fused operations: every compiler then rounds alike.
FLAGS = ("-std=c99", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")
"""What all compilers are told."""
LINK = {".dll": ("-s",), ".so": ("-s", "-lm", "-Wl,--as-needed", "-lpthread"), ".dylib": ("-lm",)}
"""What linkers are told, by how the names of libraries end."""
SOURCES = "MBSFMU_SOURCES"
"""Environment variable: a folder where the C sources of all that is compiled stay, to be read and debugged; nothing
that was compiled before is used then, and libraries know their lines."""


class CompilerError(SimulationError):
    """A compiler that is there does not do its work."""


@dataclass(frozen=True)
class Compilation:
    """Sources on their way to a library.

    Attributes
    ----------
    command
        How the compiler is called.
    sources
        Texts by file name, those that are included being among them.
    levels
        How much each of the files to compile is optimized, such as `-O2`.
    suffix
        How the library's name ends.
    aside
        Whether it is made beside what this process does: then the compiler ends where the process does, and nobody who
        interrupts it by the keyboard interrupts the compiler.
    """

    command: tuple[str, ...]
    sources: Mapping[str, str]
    levels: Mapping[str, str]
    suffix: str
    aside: bool = False

    def library(self, keep_sources_in: str | None = None) -> bytes:
        """Compile, and return what the library is; the sources stay in a folder where one is given.

        Raises
        ------
        CompilerError
            When nothing can be written, or the compiler does not do it.
        """
        if keep_sources_in:
            folder = Path(keep_sources_in).absolute() / content_key(sorted(self.sources.items()))[:12]
            try:
                folder.mkdir(parents=True, exist_ok=True)
                return self._made_in(folder)
            except OSError as error:
                told = f"{SOURCES} is {keep_sources_in}, where nothing can be written: {reason(error)}"
                raise CompilerError(told) from None
        try:
            with tempfile.TemporaryDirectory(prefix="mbsfmu-") as name:
                return self._made_in(Path(name))
        except OSError as error:
            raise CompilerError(f"nothing can be compiled in {tempfile.gettempdir()}: {reason(error)}") from None

    def _made_in(self, folder: Path) -> bytes:
        for name, text in self.sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        objects = {main: f"{main}.o" for main in self.levels}
        calls = [[*self.command, *FLAGS, self.levels[main], "-c", main, "-o", made] for main, made in objects.items()]
        with ThreadPoolExecutor(len(calls)) as pool:
            list(pool.map(lambda call: self.run(call, folder), calls))
        library = f"unit{self.suffix}"
        link = [each for each in LINK[self.suffix] if not ("-g" in self.command and each == "-s")]
        self.run([*self.command, "-shared", *objects.values(), "-o", library, *link], folder)
        if not (folder / library).is_file():
            told = f"the C compiler {shlex.join(self.command)} says that all is well, but makes no library"
            raise CompilerError(told)
        return (folder / library).read_bytes()

    def run(self, call: Sequence[str], folder: Path) -> None:
        """Call the compiler in a folder.

        Raises
        ------
        CompilerError
            When it cannot be called, or refuses.
        """
        group = 0 if self.aside and os.name == "posix" else None
        try:
            with subprocess.Popen(
                call, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                process_group=group,
            ) as process:  # fmt: skip
                if self.aside:
                    _aside.add(process)
                said = process.communicate()[1]
                _aside.discard(process)
        except OSError as error:
            raise CompilerError(f"the C compiler cannot be called: {error}") from None
        if process.returncode:
            lines = [line for line in said.splitlines() if line.strip()]
            why = next(
                (line for line in lines if "error" in line.lower()), lines[-1] if lines else "it gives no reason"
            )
            raise CompilerError(f"the C compiler {call[0]} refuses the generated sources: {why.strip()}")


_aside: set[subprocess.Popen[str]] = set()
"""Compilers that work beside what this process does."""


@atexit.register
def _end_those_aside() -> None:
    """End compilers that nobody waits for any more, and what they have started."""
    for process in tuple(_aside):
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
