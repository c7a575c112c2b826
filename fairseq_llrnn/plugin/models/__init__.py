"""llrnn_lm, llrnn_lstm, llrnn_transformer, and the decoder that they share."""
