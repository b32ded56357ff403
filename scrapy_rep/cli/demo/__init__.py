"""``scrapy robots demo``: a real crawl over real sites, every outcome checked."""
