"""What the tests of systems share."""

from llrnn_command import llrnn as llrnn
