"""What every other room stands on: types, forms of data, threads, memory, warnings."""
