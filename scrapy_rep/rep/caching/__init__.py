"""What the result of a fetch allows, and how long it may be used."""
