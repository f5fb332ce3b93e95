"""Make bundles of JavaScript libraries in mbsfmu/view/assets from npm: what pages take of each, and nothing else.

Needs Node's npm. Run: python benchmarks/vendor_bundles.py [three] [dagre], all by default
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ESBUILD = "0.28.2"
HERE = Path(__file__).parent
ASSETS = HERE.parent / "mbsfmu" / "view" / "assets"


@dataclass(frozen=True)
class Bundle:
    """A library in one file; benchmarks/NAME_exports.js says what is taken of it.

    Attributes
    ----------
    package, version
        In the npm registry.
    origin
        The file of the package that is bundled.
    variable
        What its parts are called in pages.
    purpose
        What pages need it for.
    """

    package: str
    version: str
    origin: str
    variable: str
    purpose: str


BUNDLES = {
    "three": Bundle("three", "0.187.0", "build/three.module.js", "THREE", "moving machines in three dimensions"),
    "dagre": Bundle("@dagrejs/dagre", "3.1.3", "dist/dagre.esm.js", "dagre", "layout of hydraulic circuits"),
}


def main() -> None:
    """Make the bundles that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BUNDLES)}")
    for name in parser.parse_args().names or BUNDLES:
        make(name, BUNDLES[name])


def make(name: str, bundle: Bundle) -> None:
    """Install package and bundler in a folder that goes again, bundle, and write file, licence and manifest."""
    files = {f"{name}/{name}.min.js": bundle.origin, f"{name}/LICENSE": "LICENSE"}
    (ASSETS / name).mkdir(exist_ok=True)
    made, licence = (ASSETS / file for file in files)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "package.json").write_text("{}")
        wanted = [f"{bundle.package}@{bundle.version}", f"esbuild@{ESBUILD}"]
        subprocess.run(["npm", "install", "--silent", *wanted], cwd=folder, check=True)
        exports = f"{name}_exports.js"
        shutil.copy(HERE / exports, folder)
        options = ["--bundle", "--minify", "--format=iife", f"--global-name={bundle.variable}", "--target=es2020"]
        command = ["npx", "esbuild", exports, *options, "--legal-comments=none", f"--outfile={made}"]
        subprocess.run(command, cwd=folder, check=True)
        shutil.copy(folder / "node_modules" / bundle.package / "LICENSE", licence)
    ours = {
        "package": bundle.package,
        "version": bundle.version,
        "licence": "MIT",
        "for": bundle.purpose,
        "made_by": f"benchmarks/vendor_bundles.py with esbuild {ESBUILD}, without what nobody uses",
        "files": [
            {"file": file, "from": origin, "sha256": hashlib.sha256((ASSETS / file).read_bytes()).hexdigest()}
            for file, origin in files.items()
        ],
    }
    manifest = ASSETS / "manifest.json"
    others = [each for each in json.loads(manifest.read_text()) if each["package"] != bundle.package]
    manifest.write_text(json.dumps([*others, ours], indent=2) + "\n")
    print(f"{name}.min.js: {made.stat().st_size} bytes")


if __name__ == "__main__":
    main()
