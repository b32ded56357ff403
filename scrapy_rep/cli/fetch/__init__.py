"""``scrapy robots fetch``: how a robots.txt is answered, and what that means."""
