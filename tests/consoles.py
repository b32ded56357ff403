"""Pages of the documentation, typed as they are: files written, commands run, outputs compared.

A ``literalinclude`` with a caption is saved under that name, a ``code-block`` with one is
added to that file, and what stands in a ``code-block:: console`` is run by bash. In outputs,
``...`` stands for anything, as in doctest. What differs each time is not compared: times
of the day, durations, versions, sizes of reports, and the port, for which pages have 8000.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

DIRECTIVE = re.compile(
    r"^(?P<indent> *)\.\. (?P<name>code-block|literalinclude):: *(?P<argument>\S+)\n"
    r"(?P<options>(?:(?P=indent) +:\w+:.*\n)*)"
    r"(?P<content>(?:(?P=indent) +.*\n|\n)*)",
    re.MULTILINE,
)
CAPTION = re.compile(r":caption: *(\S+)")
# A command, with the lines that it goes on in, and what it writes.
COMMAND = re.compile(r"^\$ (?P<typed>.*\n(?:>.*\n)*)(?P<shown>(?:(?!\$ ).*\n)*)", re.MULTILINE)

PORT = "8000"
SERVER = "python3 -m http.server "
VARYING = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?"
    r"|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"
    r"|\b[\d.]+ (?:s|min)\b"
    r'|(?<="age": )[\d.]+|(?<="left": )[\d.]+'
    r"|(?<=Scrapy/)[\d.]+"
    r"|\b\d\d,\d{3} bytes"
)


class Command(NamedTuple):
    """What is typed, and what a page shows for it."""

    typed: str
    shown: str


def commands(console: str) -> Iterator[Command]:
    """The commands of a block."""
    for match in COMMAND.finditer(console):
        yield Command(re.sub(r"^> ?", "", match["typed"], flags=re.MULTILINE), match["shown"])


class Reader:
    """Somebody who types in *folder* what pages say."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server: subprocess.Popen[str] | None = None
        self._port = PORT

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.communicate()

    def read(self, page: Path) -> int:
        """Do all that *page* says, and return the number of commands.

        Raises :exc:`AssertionError` where a command does not write what is shown.
        """
        count = 0
        for directive in DIRECTIVE.finditer(page.read_text("utf-8")):
            content = textwrap.dedent(directive["content"]).strip("\n") + "\n"
            caption = CAPTION.search(directive["options"])
            if directive["argument"] == "console":
                for command in commands(content):
                    self._type(command)
                    count += 1
            elif caption is not None and directive["name"] == "literalinclude":
                self._save(
                    caption[1], "w", (page.parent / directive["argument"]).read_text("utf-8")
                )
            elif caption is not None:
                self._save(caption[1], "a", content)
        return count

    def _save(self, name: str, mode: str, text: str) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text.replace(PORT, self._port))

    def _type(self, command: Command) -> None:
        if command.typed.startswith(SERVER):
            written = self._serve(command.typed)
        else:
            written = self._start(command.typed.replace(PORT, self._port)).communicate()[0]
        written = written.replace(self._port, PORT)
        want, got = (_without_varying(text) for text in (command.shown, written))
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        same = doctest.OutputChecker().check_output(want, got, flags)
        assert same, f"$ {command.typed}\nis to write\n{command.shown}\nand writes\n{written}"

    def _serve(self, typed: str) -> str:
        """Start a server, on any port, that goes on; return what it says of itself."""
        # Who types takes longer than the second by which HTTP tells versions of a file apart.
        a_minute_ago = time.time() - 60
        for path in self._folder.rglob("*.*"):
            os.utime(path, (a_minute_ago, a_minute_ago))
        self._server = self._start("exec " + typed.replace(PORT, "0"))
        assert self._server.stdout is not None
        said = self._server.stdout.readline()
        port = re.search(r"(?<= port )\d+", said)
        assert port is not None, said
        self._port = port[0]
        return said

    def _start(self, typed: str) -> subprocess.Popen[str]:
        # What pages call python3 and scrapy is what runs the tests.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.Popen(
            ["bash", "-c", typed],
            cwd=self._folder,
            env={**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )


def _without_varying(text: str) -> str:
    return VARYING.sub("@", text)
