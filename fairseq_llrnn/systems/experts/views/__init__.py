"""What the system adds to sub-commands: explain.py to `llrnn explain`."""
