"""C sources of FMUs as a target with hard deadlines has them: allocations, stack, and the worst of a million steps.

Each model is exported with one C file, compiled with a host in C into one program, and stepped by 1 ms with a limit of
iterations. The program counts calls of `malloc` and its kin (by the linker's --wrap), paints the stack of the thread
that steps and sees how deep it was used, and times each step. Of each step the least of all runs counts, which leaves
out what else the machine does; the last run alone is told beside it.

Needs gcc. Run: python benchmarks/source_fmus.py [--quick]
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import fmpy

import mbsfmu
from mbsfmu import CoupledModel
from mbsfmu.cli.found_models import find_model

QUICK = "--quick" in sys.argv  # a taste of it in seconds, which the tests take
STEP, STEPS, RUNS, ITERATIONS = 1e-3, 300 if QUICK else 1_000_000, 2 if QUICK else 3, 2
EXAMPLES = Path(__file__).parent.parent / "examples"
MODELS = {
    "four-bar": "four-bar",
    "crane": f"{EXAMPLES / 'crane.py'}:crane",
    "excavator": f"{EXAMPLES / 'excavator.py'}:excavator",
}
FLAGS = ("-std=c99", "-O2")
ALLOCATORS = ("malloc", "calloc", "realloc")
HOST = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STACK (4u << 20)
#define PAINT 0xA5
void *@_fmi2Instantiate(const char *, int, const char *, const char *, const void *, int, int);
int @_fmi2SetupExperiment(void *, int, double, double, int, double);
int @_fmi2EnterInitializationMode(void *);
int @_fmi2ExitInitializationMode(void *);
int @_fmi2DoStep(void *, double, double, int);
int @_fmi2GetReal(void *, const unsigned *, size_t, double *);
int @_fmi2Reset(void *);
void @_fmi2FreeInstance(void *);

static unsigned long allocations;
void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void *__real_realloc(void *, size_t);
void *__wrap_malloc(size_t size) { allocations++; return __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { allocations++; return __real_calloc(count, size); }
void *__wrap_realloc(void *old, size_t size) { allocations++; return __real_realloc(old, size); }

static const char *guid;
static double step_size;
static long steps, runs, failed;
static unsigned output;
static float *least, *last;
static unsigned long before, started, stepped;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int begin(void *unit) {
    return @_fmi2SetupExperiment(unit, 0, 0.0, 0.0, 0, 0.0) || @_fmi2EnterInitializationMode(unit)
        || @_fmi2ExitInitializationMode(unit);
}

static void *run(void *given) {
    void *const unit = @_fmi2Instantiate("a", 1, guid, "", NULL, 0, 0);
    double value;
    (void)given;
    before = allocations;
    for (long k = 0; k < runs; k++) {
        if (!unit || (k && @_fmi2Reset(unit)) || begin(unit)) { failed = -1; return NULL; }
        if (k == 0) started = allocations;
        for (long i = 0; i < steps; i++) {
            const double start = now();
            const int status = @_fmi2DoStep(unit, (double)i * step_size, step_size, 1)
                || @_fmi2GetReal(unit, &output, 1, &value);
            const float taken = (float)(1e6 * (now() - start));
            if (status) { failed = i + 1; return NULL; }
            if (k == 0 || taken < least[i]) least[i] = taken;
            last[i] = taken;
        }
    }
    stepped = allocations;
    @_fmi2FreeInstance(unit);
    return NULL;
}

static int compare(const void *one, const void *other) {
    const float a = *(const float *)one, b = *(const float *)other;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    pthread_attr_t attributes;
    pthread_t thread;
    unsigned char *stack;
    size_t unused = 0;
    if (count != 6) return 2;
    guid = arguments[1], step_size = atof(arguments[2]), steps = atol(arguments[3]), runs = atol(arguments[4]);
    output = (unsigned)atoi(arguments[5]);
    least = malloc(sizeof *least * (size_t)steps);
    last = malloc(sizeof *last * (size_t)steps);
    if (!least || !last || posix_memalign((void **)&stack, 4096, STACK)) return 3;
    memset(stack, PAINT, STACK);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    if (pthread_create(&thread, &attributes, run, NULL)) return 4;
    pthread_join(thread, NULL);
    if (failed) { fprintf(stderr, "step %ld fails\n", failed); return 5; }
    while (unused < STACK && stack[unused] == PAINT) unused++;
    qsort(least, (size_t)steps, sizeof *least, compare);
    qsort(last, (size_t)steps, sizeof *last, compare);
    printf("%lu %lu %lu %lu %g %g %g %g %g\n", before, started - before, stepped - started,
        (unsigned long)(STACK - unused), (double)least[steps / 2], (double)least[(long)(0.9999 * (double)steps)],
        (double)least[steps - 1], (double)last[(long)(0.9999 * (double)steps)], (double)last[steps - 1]);
    return 0;
}
"""


def measured(name: str, model: CoupledModel, folder: Path) -> list[str]:
    """Return a row of the table: allocations, stack and times of a model's FMU."""
    (unit,) = mbsfmu.export(
        model, folder, layout="monolithic", platforms=[], sources="single", step=STEP, iterations=ITERATIONS
    )
    with zipfile.ZipFile(unit) as archive:
        archive.extractall(folder)
    described = fmpy.read_model_description(str(unit))
    identifier = described.coSimulation.modelIdentifier
    (folder / "host.c").write_text(HOST.replace("@", identifier))
    wraps = [f"-Wl,--wrap={each}" for each in ALLOCATORS]
    source = f"sources/{identifier}.c"
    subprocess.run(["gcc", *FLAGS, "-fstack-usage", "-c", source, "-o", "model.o"], check=True, cwd=folder)
    command = ["gcc", "-O2", "host.c", "model.o", "-o", "host", *wraps, "-lm"]
    subprocess.run(command, check=True, cwd=folder)
    frames = [line.split("\t")[1:] for line in (folder / "model.su").read_text().splitlines()]
    assert all("dynamic" not in kind or "bounded" in kind for _, kind in frames), "the stack of a function has no bound"
    output = next(each.valueReference for each in described.modelVariables if each.causality == "output")
    call = ["./host", str(described.guid), repr(STEP), str(STEPS), str(RUNS), str(output)]
    done = subprocess.run(call, check=True, cwd=folder, capture_output=True, text=True)
    made, begun, stepped, stack, median, most, worst, most_of_one, worst_of_one = map(float, done.stdout.split())
    largest = max(int(size) for size, _ in frames)
    cells = [f"{made:.0f}", f"{begun:.0f}", f"{stepped:.0f}", f"{stack / 1024:.1f}", f"{largest / 1024:.1f}"]
    times = [f"{each:.2f}" for each in (median, most, worst)]
    return [name, *cells, *times, f"{worst / median:.1f}", f"{most_of_one:.2f}", f"{worst_of_one:.1f}"]


def main() -> None:
    """Print one row for each model."""
    logging.disable(logging.WARNING)
    titles = ["model", "allocations: instance", "initialization", "steps", "stack [kB]", "largest frame [kB]"]
    titles += ["step: median [µs]", "99.99 % [µs]", "worst [µs]", "worst : median"]
    titles += ["one run: 99.99 % [µs]", "worst [µs]"]
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for name in list(MODELS)[:1] if QUICK else MODELS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"| {' | '.join(measured(name, find_model(MODELS[name], ()), Path(folder)))} |", flush=True)


if __name__ == "__main__":
    main()
