"""What the system adds to sub-commands: show.py to `llrnn show`, explain.py to `llrnn explain`."""
