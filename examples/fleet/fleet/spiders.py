"""The spider of each worker."""

from collections.abc import Iterator

from scrapy.http import HtmlResponse, Request, Response
from scrapy_redis.spiders import RedisSpider


class FleetSpider(RedisSpider):
    """Takes start URLs from the list ``fleet:start_urls`` in Redis, and follows links."""

    name = "fleet"
    redis_key = "fleet:start_urls"
    # How many start URLs a worker puts into the queue of all at a time.
    redis_batch_size = 1000

    def parse(self, response: Response) -> Iterator[Request]:
        """Follow all links of a page."""
        if isinstance(response, HtmlResponse):
            yield from response.follow_all(css="a")
