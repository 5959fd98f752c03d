"""The CUDA engine: samples, kernel values, coefficients and gradient on one GPU.

The only room that imports CuPy, and only when a fit asks for the engine.
"""

from .engine import CudaEngine

__all__ = ["CudaEngine"]
