"""Build sdist and wheel, check them, and use the wheel in empty environments."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str | Path) -> None:
    """Run *command*; its failure is ours."""
    subprocess.run([str(part) for part in command], cwd=ROOT, check=True)


def tracked_files() -> set[str]:
    """The files of the project that git has, or would be given."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


def check_wheel(wheel: Path) -> None:
    """The wheel holds the package, all of it, and nothing else."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expect_same(wheel, packed, {name for name in tracked_files() if name.startswith("scrapy_rep/")})


def check_sdist(sdist: Path) -> None:
    """The sdist holds all files of the project."""
    with tarfile.open(sdist) as archive:
        files = [member.name for member in archive if member.isfile()]
    packed = {name.partition("/")[2] for name in files if ".egg-info/" not in name} - {"PKG-INFO"}
    expect_same(sdist, packed, tracked_files())


def expect_same(archive: Path, packed: set[str], expected: set[str]) -> None:
    """End here if *archive* holds anything but what is expected."""
    if packed != expected:
        sys.exit(f"{archive.name} differs from the project in {sorted(packed ^ expected)}")


def pythons() -> list[str]:
    """The oldest and the newest Python present of those that the package is for."""
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", "utf-8")
    versions = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    present = [path for path in map(find_python, versions) if path] or [sys.executable]
    return list(dict.fromkeys([present[0], present[-1]]))


def find_python(version: str) -> str:
    """The path of a Python of that *version*, "" if there is none."""
    command = [sys.executable, "-m", "uv", "python", "find", "--system", "--no-project", version]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def use_wheel(wheel: Path, python: str, empty: Path) -> None:
    """Install *wheel* in an environment of its own, and run what the README says."""
    run(sys.executable, "-m", "uv", "venv", "--python", python, empty)
    python_there = empty / "bin" / "python"
    run(sys.executable, "-m", "uv", "pip", "install", "--python", python_there, wheel)
    show_version = "import scrapy_rep, sys; print(scrapy_rep.__version__, sys.version)"
    run(python_there, "-I", "-c", show_version)
    run(python_there, "-I", "-m", "scrapy", "robots", "demo")


def main() -> None:
    """Check everything that an index, or a user of one, would stumble over."""
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        run(sys.executable, "-m", "build", "--installer", "uv", "--outdir", dist, ROOT)
        run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir())
        (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
        check_wheel(wheel)
        check_sdist(sdist)
        for number, python in enumerate(pythons()):
            use_wheel(wheel, python, Path(folder) / f"empty-{number}")


if __name__ == "__main__":
    main()
