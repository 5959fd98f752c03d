"""One small adapter a contender; each runs in its own process, and a peer in its own environment."""
