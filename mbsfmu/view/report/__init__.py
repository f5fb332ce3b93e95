"""Reports of runs, coupled runs, comparisons and studies."""

from mbsfmu.view.report.report_sections import Circumstances
from mbsfmu.view.report.report_writing import write_report

__all__ = ["Circumstances", "write_report"]
