"""Whether tests of engine="cuda" can run here."""

import os

import numpy as np

from multimargin.engines.cuda.device import cupy

# JAX takes three quarters of a card's memory when it starts, and other tests share the card.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def why_no_gpu():
    """Why they cannot; None if they can."""
    try:
        cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return None


class HostArray(np.ndarray):
    """NumPy's arrays with the one method that they lack of CuPy's."""

    def get(self):
        return np.asarray(self)
