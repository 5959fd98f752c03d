"""Files: data (text, arrays and tables), models, and exports to other programs."""
