"""One current policy per origin: cached, from the store, or fetched."""
