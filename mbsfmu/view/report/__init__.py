"""Reports: pages that say what came of a run, a coupled run, a comparison or a study."""

from mbsfmu.view.report.circumstances import Circumstances
from mbsfmu.view.report.report_writing import write_report

__all__ = ["Circumstances", "write_report"]
