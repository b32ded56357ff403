"""``scrapy robots explain``: why one URL is allowed or refused."""
