"""Many processes: what a team of MPI ranks needs. Only ``team.py`` imports mpi4py, when a fit begins."""
