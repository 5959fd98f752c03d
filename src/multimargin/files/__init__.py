"""Data files: text, arrays and tables, read into arrays and written from them."""
