"""The signals of this package."""

from __future__ import annotations

#: Sent when a fetch finds another robots.txt than the one before: other bytes, a file where
#: there was none, or none where there was one. A handler gets *old* and *new*, each a
#: :class:`~scrapy_rep.RobotsTxt` or ``None`` for no file, and *origin*, an
#: :class:`~scrapy_rep.Origin`.
robots_changed = object()
