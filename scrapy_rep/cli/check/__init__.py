"""``scrapy robots check``: which of some URLs are allowed."""
