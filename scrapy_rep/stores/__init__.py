"""Where what is known of origins outlives the crawl.

Here may live: keeping :class:`~scrapy_rep.rep.caching.cache_entry.CacheEntry` and handing them out
again, and who may fetch an origin now. Here may not live: what entry mean, how
long they may be used, and how they are fetched.

Importing this package imports nothing else; each store is loaded when it is used.
"""
