"""Rules that come with a page: headers, meta tags, links, and TDM reservations."""
