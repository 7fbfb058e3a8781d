"""Builds the documentation as a site: hack/site/build.py [FOLDER]. It asks for nothing from a network, and neither does the site."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUFFIXES = {".md", ".svg", ".png"}


def lay_out(folder: Path) -> None:
    """Copy the pages and pictures of the repository to where mkdocs looks for them."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        path = Path(name)
        if path.suffix in SUFFIXES and (ROOT / path).is_file() and not path.parts[0].startswith(".") and "testdata" not in path.parts:
            (folder / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / "docs" / path)
    for name in ("mkdocs.yml", "hooks.py"):
        shutil.copy(Path(__file__).parent / name, folder / name)


def main() -> int:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "bin" / "site").resolve()
    with tempfile.TemporaryDirectory() as folder:
        lay_out(Path(folder))
        build = ["build", "--quiet", "--strict", "--clean", "--config-file", f"{folder}/mkdocs.yml", "--site-dir", str(target)]
        code = subprocess.run([sys.executable, "-m", "mkdocs", *build], check=False, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}).returncode
    if code == 0:
        print(f"{target}/index.html")
    return code


if __name__ == "__main__":
    sys.exit(main())
