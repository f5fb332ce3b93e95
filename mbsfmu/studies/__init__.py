"""Parameter studies: one model run at many points of its parameters and settings."""

from mbsfmu.studies.open_study import OpenStudy
from mbsfmu.studies.parameter_sweep import sweep
from mbsfmu.studies.samples import Distribution, draw, read_samples
from mbsfmu.studies.sobol_indices import SobolIndices
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.studies.study_result import StudyResult

__all__ = ["Distribution", "OpenStudy", "SobolIndices", "StudyOptions", "StudyResult", "draw", "read_samples", "sweep"]
