"""Held requests, and the concurrency that they release."""
