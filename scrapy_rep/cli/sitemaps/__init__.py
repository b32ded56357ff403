"""``scrapy robots sitemaps``: the sitemaps that a robots.txt names."""
