"""The report page of a comparison."""

from mbsfmu.report.page import write_report

__all__ = ["write_report"]
