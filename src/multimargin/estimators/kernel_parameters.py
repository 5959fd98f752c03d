"""What the parameters of a kernel machine mean together: checks, kernel, bias, method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..engines import Mpi, Setting, find_engine
from ..engines.diagonal import kernel_diagonal, mean_log
from ..kernels import Kernel, kernel_class, make_kernel
from ..methods.decomposition import Decomposition
from ..methods.table import PARALLEL, find_method
from ..problems import PROBLEMS
from ..system.device_data import lives_on_device
from ..system.team import Team
from ..system.typing import Data, FloatArray
from .base import MachineClassifier
from .starts import CheckpointSetting, path_and_seconds
from .validation import check_choice, check_integer, check_number

_BIAS = ("auto", "none", "regularized", "free")


class KernelParameters(MachineClassifier):
    """The base of ``KernelSVC``, whose docstring explains the parameters."""

    machine: str
    C: float
    kernel: str | Callable[[Any, Any], Any] | Kernel
    degree: int
    gamma: float | str
    coef0: float
    bias: str
    solver: str | Decomposition
    cache_size: float | str
    working_set_size: int | str
    engine: str | Mpi
    dtype: str
    checkpoint: CheckpointSetting

    def _check_params(self) -> None:
        check_choice("machine", self.machine, tuple(PROBLEMS))
        check_choice("bias", self.bias, _BIAS)
        if self.bias in ("none", "regularized") and PROBLEMS[self.machine].balanced:
            raise ValueError(
                f"machine={self.machine!r} has a free bias: use bias='auto' or 'free'. bias={self.bias!r} is "
                "for the other machines, 'one-vs-rest' among them."
            )
        check_choice("dtype", self.dtype, ("auto", "float32", "float64"))
        self._check_common_params()
        check_number("C", self.C)
        if self.cache_size != "auto":
            check_number("cache_size", self.cache_size, positive=False)
        if self.working_set_size != "auto":
            check_integer("working_set_size", self.working_set_size, 1)
        make_kernel("poly", degree=self.degree, gamma=self.gamma, coef0=self.coef0)  # whether used or not
        path_and_seconds(self.checkpoint)
        self._setting()
        self._method()

    def _setting_for(self, X: Any) -> Setting:
        """Where a fit to these samples runs: with "auto" on the GPU if they are there."""
        setting = self._setting()
        is_free = self.engine == "auto" and setting == find_engine("auto")
        return find_engine("cuda") if is_free and lives_on_device(X) else setting

    def _setting(self) -> Setting:
        """Where a fit runs: what ``engine`` means for this solver."""
        if not (isinstance(self.solver, str) and self.solver in PARALLEL):
            return find_engine(self.engine)
        setting = find_engine("mpi" if self.engine == "auto" else self.engine)
        if not isinstance(setting, Mpi):
            raise ValueError(
                f"solver={self.solver!r} is 'dasmc' on several processes: use engine='mpi', or "
                f"solver='dasmc' with engine={self.engine!r}."
            )
        return setting

    def _make_kernel(self) -> Kernel:
        return make_kernel(self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def _kind_of_bias(self) -> str:
        """What ``bias`` means for this machine and kernel."""
        if PROBLEMS[self.machine].balanced:
            return "free"
        if self.bias != "auto":
            return self.bias
        return "regularized" if kernel_class(self.kernel).needs_bias else "none"

    def _bias_constant(self, kernel: Kernel, X: Data, weight: FloatArray, team: Team) -> float:
        """What a regularised bias adds to the kernel: 1, or a typical K(x, x) if ``bias`` is "auto".

        A row of weight 2 counts as two rows. Values of a function are too dear to be computed for that alone.
        """
        dear = kernel.native is None and not kernel.pairwise
        if self.bias != "auto" or kernel.bounded or dear:
            return 1.0
        typical = mean_log(kernel_diagonal(kernel, X, team), team, weight)
        return 1.0 if typical is None else float(np.exp(typical))

    def _method(self, setting: Setting | None = None) -> Decomposition:
        free, place = self._kind_of_bias() == "free", (setting or self._setting()).place
        return find_method(self.solver, self.working_set_size, self.machine, free, place)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed" or getattr(self.kernel, "pairwise", False)
        tags.input_tags.pairwise = bool(pairwise)
        tags.classifier_tags.multi_class = self.machine != "c-svc"
        return tags
