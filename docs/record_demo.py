"""Record ``scrapy robots demo`` as an animated SVG: ``python docs/record_demo.py``.

The demo runs, and each line appears in the picture when it appeared in the terminal. Only the
recorded text goes into ``docs/_static/demo.svg``: no script, no font, nothing to load.
"""

from __future__ import annotations

import subprocess
import sys
import time
from html import escape
from pathlib import Path

TARGET = Path(__file__).parent / "_static" / "demo.svg"
COMMAND = "scrapy robots demo"
# Of the window, in lines and characters, and of one of these in pixels.
_ROWS, _COLUMNS = 32, 118
_LINE, _LETTER = 17, 7.3
# How long the last picture stays, in seconds, before it starts again.
_PAUSE = 8.0

_STYLE = """\
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre; }
.refused { fill: #ffb38a; } .prompt { fill: #82d99f; }
@media (prefers-reduced-motion: reduce) { * { animation: none !important; } }
"""


def record() -> list[tuple[float, str]]:
    """Each line of the demo, with the seconds from the start to it."""
    start = time.monotonic()
    command = [sys.executable, "-m", "scrapy", *COMMAND.split()[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        lines = [(time.monotonic() - start, line.rstrip("\n")) for line in demo.stdout]
    if demo.returncode:
        raise SystemExit(f"the demo ended with exit status {demo.returncode}")
    return lines


def draw(lines: list[tuple[float, str]]) -> str:
    """The SVG in which *lines* appear one after the other, and scroll like a terminal."""
    shown = [(0.0, f"$ {COMMAND}"), *lines]
    whole = shown[-1][0] + _PAUSE
    width, height = round(_COLUMNS * _LETTER) + 20, _ROWS * _LINE + 20
    steps = [
        f"{100 * moment / whole:.2f}% {{ transform: translateY({_shift(number)}px); }}"
        for number, (moment, _) in enumerate(shown)
    ]
    end = _shift(len(shown) - 1)
    scroll = f"@keyframes scroll {{ {' '.join(steps)} 100% {{ transform: translateY({end}px); }} }}"
    appear = "@keyframes appear { from { visibility: hidden; } to { visibility: hidden; } }"
    rows = [_row(number, moment, text) for number, (moment, text) in enumerate(shown)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img" aria-label="{COMMAND}">',
            f"<style>{_STYLE}{scroll}\n{appear}\n"
            f"#lines {{ transform: translateY({end}px); "
            f"animation: scroll {whole:.2f}s step-end infinite; }}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#10151f"/>',
            f'<svg x="10" y="10" width="{width - 20}" height="{height - 20}"><g id="lines">',
            *rows,
            "</g></svg></svg>\n",
        ]
    )


def _shift(number: int) -> int:
    """How far line *number* from 0 moves the others up, in pixels."""
    return -_LINE * max(0, number + 1 - _ROWS)


def _row(number: int, moment: float, text: str) -> str:
    kind = "prompt" if number == 0 else "refused" if " 0 fetched" in text else ""
    return (
        f'<text class="{kind}" y="{_LINE * (number + 1) - 4}" '
        f'style="animation: appear {moment:.2f}s">{escape(text)}</text>'
    )


if __name__ == "__main__":
    TARGET.write_text(draw(record()), "utf-8")
