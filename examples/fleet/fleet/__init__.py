"""A project of which any number of processes, on any number of machines, crawl together."""
