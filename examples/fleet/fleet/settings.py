"""Settings of each worker of a fleet. All workers have the same."""

import os

SPIDER_MODULES = ["fleet.spiders"]
USER_AGENT = "ExampleBot (+https://example.com/bot)"

# One Redis for the fleet: what is to be crawled, and what robots.txt files say.
REDIS_URL = os.environ.get("REDIS_URL", "redis://localhost:6379/0")

# scrapy-redis: one queue of requests, and one filter of duplicates, for all workers.
SCHEDULER = "scrapy_redis.scheduler.Scheduler"
DUPEFILTER_CLASS = "scrapy_redis.dupefilter.RFPDupeFilter"
# A worker that ends leaves the queue to the others.
SCHEDULER_PERSIST = True
# Seconds without requests after which a worker ends; 0 for a fleet that never does.
MAX_IDLE_TIME_BEFORE_CLOSE = 5

# scrapy-rep: each robots.txt is fetched by one worker, and known to all.
ADDONS = {"scrapy_rep.Addon": 500}
REP_STORE = os.environ.get("REP_STORE", REDIS_URL)

TELNETCONSOLE_ENABLED = False
LOG_LEVEL = "WARNING"
