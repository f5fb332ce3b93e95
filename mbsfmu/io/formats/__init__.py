"""Table file formats, one file each; a format registers by its suffixes."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from mbsfmu.io.formats.table_format import Table, TableFormat, format_of, read_table, suffixes, write_table

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["Table", "TableFormat", "format_of", "read_table", "suffixes", "write_table"]
