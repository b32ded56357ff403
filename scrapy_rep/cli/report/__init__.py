"""``scrapy robots report``: the page of a report, made from a store."""
