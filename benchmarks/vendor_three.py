"""Make mbsfmu/view/assets/three from npm: what scenes take of three.js (three_exports.js), and nothing else.

Needs Node's npm. Run: python benchmarks/vendor_three.py
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tempfile
from pathlib import Path

THREE, ESBUILD = "0.187.0", "0.28.2"
HERE = Path(__file__).parent
ASSETS = HERE.parent / "mbsfmu" / "view" / "assets"
FILES = {"three/three.min.js": "build/three.module.js", "three/LICENSE": "LICENSE"}
"""Files by where they stand here, with the file of the package that they are of."""


def main() -> None:
    """Install both packages in a folder that goes again, bundle, and write file, licence and manifest."""
    (ASSETS / "three").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--silent", f"three@{THREE}", f"esbuild@{ESBUILD}"], cwd=folder, check=True)
        shutil.copy(HERE / "three_exports.js", folder)
        options = ["--bundle", "--minify", "--format=iife", "--global-name=THREE", "--target=es2020"]
        target = f"--outfile={ASSETS / 'three' / 'three.min.js'}"
        command = ["npx", "esbuild", "three_exports.js", *options, "--legal-comments=none", target]
        subprocess.run(command, cwd=folder, check=True)
        shutil.copy(folder / "node_modules" / "three" / "LICENSE", ASSETS / "three" / "LICENSE")
    ours = {
        "package": "three",
        "version": THREE,
        "licence": "MIT",
        "for": "moving machines in three dimensions",
        "made_by": f"benchmarks/vendor_three.py with esbuild {ESBUILD}, without what nobody uses",
        "files": [
            {"file": file, "from": origin, "sha256": hashlib.sha256((ASSETS / file).read_bytes()).hexdigest()}
            for file, origin in FILES.items()
        ],
    }
    manifest = ASSETS / "manifest.json"
    others = [each for each in json.loads(manifest.read_text()) if each["package"] != "three"]
    manifest.write_text(json.dumps([*others, ours], indent=2) + "\n")
    print(f"three.min.js: {(ASSETS / 'three' / 'three.min.js').stat().st_size} bytes")


if __name__ == "__main__":
    main()
