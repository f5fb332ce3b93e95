"""Studies: one model run at many points, of its parameters and of the settings of solver and master."""

from mbsfmu.studies.samples import Distribution, draw, read_samples
from mbsfmu.studies.study_options import StudyOptions
from mbsfmu.studies.study_result import StudyResult
from mbsfmu.studies.sweep import sweep

__all__ = ["Distribution", "StudyOptions", "StudyResult", "draw", "read_samples", "sweep"]
