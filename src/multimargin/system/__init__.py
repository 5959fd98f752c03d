"""Array types, forms of data, threads, memory and warnings. Every other room may import it."""
