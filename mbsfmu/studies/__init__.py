"""Parameter studies: one model run at many points of its parameters and settings."""

from mbsfmu.studies.parameter_sweep import OpenStudy, sweep
from mbsfmu.studies.points import Distribution, SobolIndices, draw, read_samples
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.studies.study_result import StudyResult

__all__ = ["Distribution", "OpenStudy", "SobolIndices", "StudyOptions", "StudyResult", "draw", "read_samples", "sweep"]
