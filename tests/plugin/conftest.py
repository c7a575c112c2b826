"""`llrnn` in this process, for commands that do not run fairseq."""

from llrnn_command import as_typed as as_typed
from llrnn_command import llrnn as llrnn
