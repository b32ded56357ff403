"""The parsers of robots.txt: ours, external parsers and shadow parsers."""
