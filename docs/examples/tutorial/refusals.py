"""Fetches every page, and yields an item for each refused one."""

from shop.spiders.pages import PagesSpider

from scrapy_rep import Reason, RobotsForbidden


class RefusalsSpider(PagesSpider):
    """Fetches every page, and yields an item for each refused one."""

    name = "refusals"

    def parse(self, response):
        """Follow all links, with an errback for refused requests."""
        for link in response.css("a"):
            yield response.follow(link, callback=self.parse_page, errback=self.failed)

    def failed(self, failure):
        """One item for each request that robots.txt refuses."""
        if not failure.check(RobotsForbidden):
            self.logger.error("%s: %s", failure.request.url, failure.value)
            return
        verdict = failure.value.verdict
        if verdict.reason is Reason.RULE:
            yield {"url": failure.request.url, "line": verdict.line, "rule": str(verdict.rule)}
        else:
            yield {"url": failure.request.url, "refused": verdict.reason.value}
