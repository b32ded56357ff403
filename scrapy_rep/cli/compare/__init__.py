"""``scrapy robots compare``: the same questions put to each dialect and to other parsers."""
