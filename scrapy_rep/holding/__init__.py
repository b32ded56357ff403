"""Requests that wait, and the concurrency that they release meanwhile."""
