"""Whether tests of engine="cuda" can run here."""

from multimargin.engines.cuda.device import cupy


def why_no_gpu():
    """Why they cannot; None if they can."""
    try:
        cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return None
