"""One small adapter per contender; each runs in its own process, and a peer in its own environment."""
