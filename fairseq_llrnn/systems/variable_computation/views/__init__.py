"""What the system adds to sub-commands: explain.py to `llrnn explain`."""

COMPUTATION = "computation"  # the name of the share m of the dimensions, in logs and explanations
