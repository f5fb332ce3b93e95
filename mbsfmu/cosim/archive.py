"""An FMU file, checked and unpacked."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import fmpy

from mbsfmu.errors import InputError


class Archive:
    """An FMU file, unpacked once for all its instances; `close` removes what was unpacked.

    Parameters
    ----------
    path
        The FMU file.

    Raises
    ------
    InputError
        When it is no FMI 2.0 co-simulation FMU that runs on this platform.
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
        self.folder = tempfile.mkdtemp(prefix="mbsfmu-")
        fmpy.extract(str(path), unzipdir=self.folder)

    def close(self) -> None:
        """Remove the unpacked files."""
        shutil.rmtree(self.folder, ignore_errors=True)
