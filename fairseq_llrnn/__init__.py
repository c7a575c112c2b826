"""Log-linear RNNs for fairseq (Dymetman & Xiao 2016)."""

__version__ = "0.1.0"
