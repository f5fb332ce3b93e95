"""WebAssembly units run by Node, which has the engine of Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mbsfmu.view.pages.page import text_of

_RUN = """
const fs = require("fs");
const given = JSON.parse(fs.readFileSync(0, "utf8"));
const fmu = new MbsfmuFmu(new WebAssembly.Module(fs.readFileSync(given.module)), "unit", given.identity);
const [read, set] = [fmu.group(given.outputs), fmu.group(given.parameters)];
fmu.set(set, given.values);
const rows = [];
let fault = null, saved = null;
try {
  fmu.begin();
  rows.push([...fmu.get(read)]);
  for (let n = 0; n < given.steps; n += 1) {
    if (n === given.back) saved = fmu.save();
    fmu.step(n * given.step, given.step);
    rows.push([...fmu.get(read)]);
  }
  if (saved !== null) {
    fmu.restore(saved);
    for (let n = given.back; n < given.steps; n += 1) fmu.step(n * given.step, given.step);
    rows.push([...fmu.get(read)]);
  }
} catch (error) {
  fault = error.message;
}
console.log(JSON.stringify({ rows, fault }));
"""


def run_in_node(folder: Path, **given: Any) -> dict[str, Any]:
    """Run a unit by `fmu.js`: `module`, `identity`, references of `outputs` and `parameters`, their `values`, `step` in
    s, number of `steps`, and the step before which its state is saved, to go `back` there at the end.
    """
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node on this machine")
    script = folder / "run.js"
    script.write_text(text_of("play/fmu.js") + _RUN)
    told = json.dumps({"parameters": [], "values": [], "back": None, **given})
    done = subprocess.run([node, script], input=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
