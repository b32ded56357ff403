"""What is wrong with a file, and which of its rules change nothing."""
