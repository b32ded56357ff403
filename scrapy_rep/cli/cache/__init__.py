"""``scrapy robots cache``: the store of robots.txt policies, looked at and managed."""
