"""What is known of words before training: dictionary, lexicon and its readers, spelling, feature table, signatures."""
