"""Parameter studies: one model run at many points of its parameters and settings."""

from mbsfmu.studies.parameter_sweep import OpenStudy, StudyResult, sweep
from mbsfmu.studies.points import Distribution, SobolIndices, draw, read_samples
from mbsfmu.studies.study_options import StudyOptions

__all__ = ["Distribution", "OpenStudy", "SobolIndices", "StudyOptions", "StudyResult", "draw", "read_samples", "sweep"]
