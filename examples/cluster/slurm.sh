#!/bin/bash
# One fit on several nodes of a Slurm cluster:   sbatch --nodes=4 examples/cluster/slurm.sh train.py
#
# One process per node, with a thread per core: kernel rows are then shared by most cores. The environment
# variable PYTHON names the Python that has multimargin[mpi]; it must be there on every node.
#SBATCH --job-name=multimargin
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=01:00:00
#SBATCH --output=multimargin-%j.txt
#SBATCH --signal=TERM@60

set -eu
python=${PYTHON:-python3}
program=${1:-examples/mpi_train.py}

# mpiexec of MPICH asks Slurm for the nodes, and starts its processes by srun. "-m mpi4py" ends all of them if one fails.
mpiexec=$(dirname "$(command -v "$python")")/mpiexec
exec "$mpiexec" -n "$SLURM_NTASKS" "$python" -m mpi4py "$program"
