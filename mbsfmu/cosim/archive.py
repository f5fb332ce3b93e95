"""An FMU file, checked and unpacked."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path, PurePosixPath

import fmpy

from mbsfmu.errors import InputError
from mbsfmu.files import reason, remove_folder


class Archive:
    """An FMU file, unpacked once for all its instances; `close` removes what was unpacked.

    Parameters
    ----------
    path
        The FMU file.

    Attributes
    ----------
    description
        Its description, as FMPy reads it.
    path, folder
        The file, and what it is unpacked into.

    Raises
    ------
    InputError
        When it is no FMI 2.0 co-simulation FMU that runs on this platform, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise InputError(f"there is no file {path}")
        try:
            self.description = fmpy.read_model_description(str(path), validate=False)
            platforms = fmpy.supported_platforms(str(path))
        except Exception as error:  # FMPy raises bare exceptions here
            raise InputError(f"{path} is no FMU that can be read: {str(error).strip()}") from None
        if self.description.fmiVersion != "2.0" or self.description.coSimulation is None:
            raise InputError(f"{path} is no FMI 2.0 co-simulation FMU (it is FMI {self.description.fmiVersion})")
        if fmpy.platform not in platforms:
            raise InputError(f"{path} has no binary for {fmpy.platform}; it has {', '.join(platforms) or 'none'}")
        self.path = path
        self._check_entries()
        self.folder = tempfile.mkdtemp(prefix="mbsfmu-")
        try:
            fmpy.extract(str(path), unzipdir=self.folder)
        except BaseException as error:
            self.close()
            if isinstance(error, Exception):  # of any kind: what zipfile and FMPy raise
                told = reason(error) if isinstance(error, OSError) else str(error).strip()
                raise InputError(f"{path} cannot be unpacked: {told}") from None
            raise

    def _check_entries(self) -> None:
        """Check that the library is there under its name, and that nothing would be unpacked outside."""
        with zipfile.ZipFile(self.path) as archive:
            names = [PurePosixPath(name) for name in archive.namelist()]
        for name in names:
            if ".." in name.parts:
                raise InputError(f"{self.path} has the entry {name}, which leads out of it")
        assert self.description.coSimulation is not None
        library = f"{self.description.coSimulation.modelIdentifier}{fmpy.sharedLibraryExtension}"
        folder = PurePosixPath("binaries", fmpy.platform)
        if folder / library not in names:
            found = ", ".join(name.name for name in names if name.parent == folder)
            raise InputError(f"{self.path} has no library {library} for {fmpy.platform}; {folder} has {found}")

    def close(self) -> None:
        """Remove the unpacked files."""
        remove_folder(self.folder)
