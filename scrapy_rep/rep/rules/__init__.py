"""Which rule decides about a URL, why, and what other dialects would say."""
