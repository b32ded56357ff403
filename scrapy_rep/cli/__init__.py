"""What people run: the ``scrapy robots`` command and its parts."""
