"""Who sees what a crawl learns and decides, without a say in it."""
