"""Crawl-delay, Request-rate, Visit-time and usage preferences, as they bind a crawl."""
