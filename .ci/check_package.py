"""Build sdist and wheel, check them, and use the wheel in an empty environment."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path) -> None:
    """Run *command*; its failure is ours."""
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def check_contents(wheel: Path) -> None:
    """The wheel holds the package, all of it, and nothing else."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = ("*.py", "*.css", "*.html", "*.js", "py.typed")
    package = {
        str(path.relative_to(ROOT))
        for pattern in files
        for path in (ROOT / "scrapy_rep").rglob(pattern)
    }
    if packed != package:
        sys.exit(f"{wheel.name} differs from the package in {sorted(packed ^ package)}")


def main() -> None:
    """Check everything that an index, or a user of one, would stumble over."""
    with tempfile.TemporaryDirectory() as folder:
        dist, empty = Path(folder) / "dist", Path(folder) / "empty"
        run(sys.executable, "-m", "build", "--outdir", dist, ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
        (wheel,) = dist.glob("*.whl")
        check_contents(wheel)
        run(sys.executable, "-m", "uv", "venv", "--python", sys.executable, empty)
        python = empty / "bin" / "python"
        run(sys.executable, "-m", "uv", "pip", "install", "--python", python, wheel)
        run(python, "-I", "-c", "import scrapy_rep; print(scrapy_rep.__version__)")
        run(python, "-I", "-m", "scrapy", "robots", "demo")


if __name__ == "__main__":
    main()
