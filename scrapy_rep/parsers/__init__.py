"""Who reads a robots.txt: our parser, external ones, and second opinions."""
