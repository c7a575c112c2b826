"""What the tests of systems share."""

from llrnn_command import checkpoint as checkpoint
from llrnn_command import llrnn as llrnn
