"""llrnn_language_modeling and llrnn_translation, and the criterion log_linear."""
