"""From bytes to lines, groups and records; URLs and product tokens as they are compared."""
