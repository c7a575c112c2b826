"""The prior: its directory on disk, and how it is built."""
