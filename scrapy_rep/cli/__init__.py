"""The command ``scrapy robots``: a module for each subcommand, and what they share."""
