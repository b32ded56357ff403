"""The report: a page that shows what a crawl, or a store, knows of robots.txt."""
