"""The pace that sites ask for."""
