"""Parameter studies: one model run at many points of its parameters and settings."""

from mbsfmu.studies.parameter_sweep import sweep
from mbsfmu.studies.samples import Distribution, draw, read_samples
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.studies.study_result import StudyResult

__all__ = ["Distribution", "StudyOptions", "StudyResult", "draw", "read_samples", "sweep"]
