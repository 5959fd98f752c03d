"""Cross-validation over a grid, with kernel values that all fits share."""
