"""Fetches every page that the start page links to."""

import scrapy


class PagesSpider(scrapy.Spider):
    """Fetches every page that the start page links to."""

    name = "pages"
    start_urls = ["http://127.0.0.1:8000/"]

    def parse(self, response):
        """Follow all links."""
        for link in response.css("a"):
            yield response.follow(link, callback=self.parse_page)

    def parse_page(self, response):
        """One item for each page."""
        yield {"url": response.url, "bytes": len(response.body)}
