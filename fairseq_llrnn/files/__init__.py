"""Text files, line by line, and files that are written as a whole or not at all."""
