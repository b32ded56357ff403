"""The Robots Exclusion Protocol, sans I/O.

Bytes and values in, values out: nothing in this package reads a clock, a
socket, a setting or a log, and nothing in it imports more than the standard
library. Each file owns one part of the protocol:

============================  ==================================================
:mod:`~scrapy_rep.rep.lines`      octets -> records
:mod:`~scrapy_rep.rep.agents`     product tokens, ours and those that groups name
:mod:`~scrapy_rep.rep.urls`       origins, and the form of a path that is compared
:mod:`~scrapy_rep.rep.matching`   which rule of a group decides about a path
:mod:`~scrapy_rep.rep.robotstxt`  groups, rules and other records of one file
:mod:`~scrapy_rep.rep.access`     what the result of a fetch lets a crawler do
:mod:`~scrapy_rep.rep.freshness`  how long what is known may be used
:mod:`~scrapy_rep.rep.policy`     all that is known of one origin
:mod:`~scrapy_rep.rep.verdict`    the answer, and what it rests on
:mod:`~scrapy_rep.rep.dialects`   what the specifications say, as data
============================  ==================================================
"""
