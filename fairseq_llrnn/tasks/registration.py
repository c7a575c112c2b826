"""fairseq imports this module when it scans its --user-dir: our tasks, models and criterion register themselves."""

from fairseq_llrnn import register

register()
