"""The Robots Exclusion Protocol, sans I/O.

Bytes and values in, values out: nothing in this package reads a clock, a
socket, a setting or a log, and nothing in it imports more than the standard
library. Each folder owns one part of the protocol, each file one rule of it;
a folder imports only what stands above it in this list:

===============  ==============================================================
``text``         text from a site, made safe to show
``dialects``     what the specifications say, as data
``parsing/``     ``lines``: bytes to records; ``agents``: product tokens;
                 ``urls``: origins, and the form of a path that is compared;
                 ``groups``: groups of rules; ``records``: Sitemap and others
``lint/``        ``findings``: what is wrong with a file;
                 ``redundant_rules``: rules that change nothing
``rules/``       ``matching``: which rule decides; ``verdict``: the answer and
                 its reason; ``robotstxt``: one file and all it answers;
                 ``explain``: why; ``differences``: between dialects
``caching/``     ``access``: what the result of a fetch allows;
                 ``cache_entry``: what is stored of a fetch;
                 ``freshness``: how long it may be used
``directives/``  ``pace``: Crawl-delay, Request-rate and Visit-time;
                 ``purposes``: Content-Signal and Content-Usage;
                 ``directives``: those that a crawl honours
``policy``       all that is known of one origin
``decision``     admit, refuse, hold or fetch
===============  ==============================================================
"""
