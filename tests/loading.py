"""What an import loads."""

from __future__ import annotations

import subprocess
import sys


def loaded_by(code: str) -> set[str]:
    """The modules that *code* loads, in an interpreter of its own."""
    # What measures coverage is there before.
    code = f"import sys; before = {{*sys.modules}}\n{code}\nprint(*sys.modules.keys() - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())
