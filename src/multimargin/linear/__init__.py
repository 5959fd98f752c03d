"""The linear machine: coordinate descent on the weights, without kernel values."""
