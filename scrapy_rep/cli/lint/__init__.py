"""``scrapy robots lint``: what is wrong in a robots.txt."""
