"""The Robots Exclusion Protocol, sans I/O.

Its functions turn bytes and values into values. They use no clock, socket, setting or log, and
import only the standard library. A folder imports only folders above it in this list:

===============  ===================================================================================
``text``         text from a site, made safe to show
``dialects``     the specifications as data
``parsing/``     ``lines``: bytes to records; ``agents``: product tokens; ``urls``: origins and
                 comparable paths; ``groups``: groups of rules; ``records``: Sitemap and others
``lint/``        ``findings``: problems of a file; ``redundant_rules``: rules without an effect
``rules/``       ``matching``: which rule decides; ``verdict``: the answer and its reason;
                 ``robotstxt``: one file; ``explain``: the part of each rule; ``differences``:
                 between dialects
``caching/``     ``access``: what the result of a fetch allows; ``cache_entry``: the value in a
                 store; ``freshness``: how long it may be used; ``recently_used``: a bounded cache
``directives/``  ``pace``: Crawl-delay, Request-rate and Visit-time; ``purposes``: Content-Signal
                 and Content-Usage; ``directives``: those that a crawl honours
``policy``       what a crawl may do at one origin
``decision``     admit, refuse, hold or fetch
===============  ===================================================================================
"""
