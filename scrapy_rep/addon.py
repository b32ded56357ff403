"""The whole installation in one setting: ``ADDONS = {"scrapy_rep.Addon": 500}``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name

from scrapy_rep.middleware import RepMiddleware
from scrapy_rep.settings import rels_not_followed

_MIDDLEWARES = "DOWNLOADER_MIDDLEWARES"


class Addon:
    """Replaces Scrapy's robots.txt middleware with :class:`~scrapy_rep.RepMiddleware`.

    It sets ROBOTSTXT_OBEY, REP_BACKOFF and ROBOTSTXT_PARSER with the priority of add-ons, so the
    settings of a project or a spider still have precedence. If REP_PAGE_RULES is ``obey``, it adds
    :class:`~scrapy_rep.pages.nofollow.NofollowMiddleware` to SPIDER_MIDDLEWARES.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy before a crawl."""
        settings.set("ROBOTSTXT_OBEY", True, "addon")
        settings.set("ROBOTSTXT_PARSER", "scrapy_rep.RepRobotParser", "addon")
        settings.set("REP_BACKOFF", True, "addon")
        if rels_not_followed(settings):
            _follow_no_nofollow(settings)
        middlewares = settings.getdict(_MIDDLEWARES)
        ours = _keys_of(RepMiddleware, middlewares)
        if any(middlewares[key] is None for key in ours):
            # The project disables ours by name, so Scrapy's own must stay enabled.
            return
        # As in DOWNLOADER_MIDDLEWARES_BASE.
        position = 100
        for key in _keys_of(RobotsTxtMiddleware, middlewares):
            its_position = middlewares.pop(key)
            position = position if its_position is None else its_position
        # The key must be the import path, as in DOWNLOADER_MIDDLEWARES_BASE. With the class as
        # key, the path would stay enabled.
        middlewares[global_object_name(RobotsTxtMiddleware)] = None
        if not ours:
            middlewares["scrapy_rep.RepMiddleware"] = position
        # Keep its priority: a value of a spider or the command line replaces the whole dict, and
        # is already in it.
        settings.set(_MIDDLEWARES, middlewares, settings.getpriority(_MIDDLEWARES) or 0)


def _follow_no_nofollow(settings: BaseSettings) -> None:
    """Enable our spider middleware, unless a project has put it somewhere or switched it off."""
    # Most crawls do without it, and without what it imports.
    from scrapy_rep.pages.nofollow import NofollowMiddleware

    name = "SPIDER_MIDDLEWARES"
    middlewares = settings.getdict(name)
    if not _keys_of(NofollowMiddleware, middlewares):
        # Next to the spider: what is dropped, no other middleware need see.
        middlewares[global_object_name(NofollowMiddleware)] = 950
        settings.set(name, middlewares, settings.getpriority(name) or 0)


def _keys_of(component: type, components: dict[Any, Any]) -> list[Any]:
    """The keys of a component dict that mean *component*: the class or its paths."""
    keys = []
    for key in components:
        # Scrapy itself reports errors that matter; a disabled component need not exist.
        with suppress(Exception):
            if load_object(key) is component:
                keys.append(key)
    return keys
