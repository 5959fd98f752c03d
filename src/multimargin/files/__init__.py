"""Files: data, models, exports."""
