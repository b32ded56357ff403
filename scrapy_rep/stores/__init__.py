"""Where cache entries outlive the crawl.

Here may live: keeping :class:`~scrapy_rep.rep.caching.cache_entry.CacheEntry`, and who may fetch
an origin now. Here may not live: what an entry means, and how robots.txt is fetched. Importing
this package imports nothing else; each store is loaded when it is used.
"""
