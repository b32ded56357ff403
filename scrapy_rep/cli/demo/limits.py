"""Room for as many sockets as the demo needs."""

from __future__ import annotations

from scrapy_rep.cli.ending import Trouble
from scrapy_rep.cli.wording import number

# What a crawl has open beside the listening sockets: both ends of each
# connection, and what Python, Scrapy and the terminal hold.
_BESIDE_SITES = 512


def allow_open_files_for(sites: int) -> None:
    """Raise the limit on open files, where there is one, to what *sites* sites need.

    Raises :exc:`Trouble` where that is more than this user may have.
    """
    try:
        import resource
    except ImportError:
        # Windows has no such limit.
        return
    needed = sites + _BESIDE_SITES
    wanted = f"{number(sites, 'site')} and the crawl take {needed} open files"
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Trouble(
            f"{wanted}, but the limit is {hard}: take fewer with --sites, or raise it (ulimit -Hn)"
        )
    try:
        # No further than needed: macOS refuses infinity.
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError) as error:
        raise Trouble(
            f"{wanted}, and the limit of {soft} cannot be raised ({error}): take fewer with --sites"
        ) from None
