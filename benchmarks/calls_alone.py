"""The calls of the FMI that any master makes in a step, alone in a loop of C: set, slopes, step, get, derivatives."""

from __future__ import annotations

import ctypes
import time
from contextlib import ExitStack
from pathlib import Path

from mbsfmu.compiling.compiler import compile_library
from mbsfmu.cosim import compiled
from mbsfmu.cosim.compiled.library import Clock, ExchangeTable, MemberTable, header
from mbsfmu.cosim.fmus.fmu_instance import FmuCalls
from mbsfmu.cosim.runs.load_fmus import instantiate, load_graph

_HOST = """
#include "ports.h"

__attribute__((visibility("default")))
int calls_alone(struct Exchange *exchange, size_t steps, double step, int slopes, int rates)
{
    exchange->environment = environment();
    for (size_t n = 0; n < steps; n++)
        for (size_t k = 0; k < exchange->member_count; k++) {
            const struct Member *member = &exchange->members[k];
            int wrong = write_port(exchange, &member->inputs);
            if (slopes)
                wrong |= write_slopes(exchange, &member->inputs);
            wrong |= member->make_step.function(member->inputs.component, (double)n * step, step, 1);
            wrong |= read_port(exchange, &member->outputs);
            if (rates)
                wrong |= read_rates(exchange, &member->outputs);
            if (wrong)
                return 1;
        }
    return 0;
}
"""


def calls_alone(source: Path | list[Path], steps: int, step: float, slopes: bool = False, rates: bool = False) -> float:
    """Return the processor time in s that so many steps in s of all units take without a master."""
    headers = [Path(str(compiled.__file__)).with_name(name) for name in ("ports.h", "environment.h")]
    texts = {each.name: each.read_text(encoding="utf-8") for each in headers}
    sources = {"host.c": _HOST, "layout.h": header(), **texts}
    host = ctypes.CDLL(str(compile_library(sources, {"host.c": "-O2"}, None, portable=False))).calls_alone
    host.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_double, ctypes.c_int, ctypes.c_int)
    with ExitStack() as stack:
        instances = stack.enter_context(instantiate(load_graph(source, stack)))
        calls, tables, kept = FmuCalls(), [], []
        for instance in instances.values():
            instance.setup(0.0, steps * step)
            instance.enter_initialization()
            instance.exit_initialization()
            names = [
                [each.name for each in instance.variables.values() if each.causality == causality]
                for causality in ("input", "output")
            ]
            inputs, outputs = (instance.port(each) for each in names)
            kept += [inputs, outputs]
            tables.append(
                MemberTable(
                    make_step=instance.step_function(calls),
                    clock=ctypes.POINTER(Clock)(instance.clock),
                    inputs=inputs.table(calls),
                    outputs=outputs.table(calls),
                )
            )
        exchange = ExchangeTable(members=(MemberTable * len(tables))(*tables), member_count=len(tables))
        begin = time.process_time()
        wrong = host(ctypes.byref(exchange), steps, step, slopes, rates)
        seconds = time.process_time() - begin
        assert not wrong
        return seconds
