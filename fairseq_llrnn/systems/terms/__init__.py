"""Terms: words and phrases that a translation has to have, in forms that the network chooses."""
