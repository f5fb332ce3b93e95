"""Reports: pages that say what came of a run, a coupled run, a comparison or a study."""

from mbsfmu.report.circumstances import Circumstances
from mbsfmu.report.writing import write_report

__all__ = ["Circumstances", "write_report"]
