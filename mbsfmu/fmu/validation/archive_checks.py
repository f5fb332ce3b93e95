"""Checks of archive entries and the positions of libraries."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterator
from itertools import product
from pathlib import PurePosixPath

from mbsfmu.fmu.validation.subject import Subject

_ENCRYPTED = 0x1  # of the flags of an entry
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLATFORMS_2 = {f"{system}{bits}" for system, bits in product(("win", "linux", "darwin"), ("32", "64"))}
_PROCESSORS = ("aarch32", "aarch64", "riscv32", "riscv64", "x86", "x86_64", "ppc32", "ppc64")
_PLATFORMS_3 = {f"{processor}-{system}" for processor, system in product(_PROCESSORS, ("darwin", "linux", "windows"))}


def check_archive(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield findings on the entries of the archive."""
    known: set[str] = set()
    for entry in subject.entries:
        name = entry.orig_filename
        if name in known:
            yield "archive-path", f"the archive has two entries {name}"
        known.add(name)
        if "\\" in name:
            yield "archive-path", f"the archive's entry {name} has a backslash"
        if name.startswith("/") or ".." in PurePosixPath(name).parts:
            yield "archive-path", f"the archive's entry {name} leads out of it"
        if entry.compress_type not in _METHODS or entry.flag_bits & _ENCRYPTED:
            yield "archive-compression", f"the archive's entry {name} is neither stored nor deflated, or is encrypted"
        if stat.S_ISLNK(entry.external_attr >> 16):
            yield "archive-link", f"the archive's entry {name} is a link"
    if subject.version in ("2.0", "3.0"):
        yield from _check_libraries(subject)


def _check_libraries(subject: Subject) -> Iterator[tuple[str, str]]:
    libraries = [PurePosixPath(name) for name in subject.names]
    libraries = [each for each in libraries if each.suffix in (".so", ".dll", ".dylib", ".a", ".lib")]
    binaries = [each for each in libraries if each.parts[0] == "binaries" and len(each.parts) > 2]
    if not binaries and not any(
        name.startswith("sources/") and name.endswith((".c", ".cpp")) for name in subject.names
    ):
        yield "implementation", "there is neither a binary nor a source"
    identifiers = dict.fromkeys(each.get("modelIdentifier") for each in subject.interfaces)
    known = _PLATFORMS_3 if subject.version == "3.0" else _PLATFORMS_2
    for platform in sorted({each.parts[1] for each in binaries}):
        for identifier in identifiers:
            if not any(each.parts[1] == platform and each.stem == identifier for each in binaries):
                yield "library-name", f"binaries/{platform} has no library named after the modelIdentifier {identifier}"
        if platform not in known:
            yield "platform-name", f"binaries/{platform} is for a platform that the standard has no name for"
