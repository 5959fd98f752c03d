"""The story of a run: trace and limits, progress, seconds of each phase."""
