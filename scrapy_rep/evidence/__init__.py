"""Evidence: an audit log of decisions, an archive of robots.txt answers, and what changed."""
