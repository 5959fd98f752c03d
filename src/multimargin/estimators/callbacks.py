"""scikit-learn's callback protocol, which exists in version 1.9 and later."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..run.progress import EVERY
from ..solution import TraceRow
from ..system.team import SOLO, Team

_Method = TypeVar("_Method", bound=Callable[..., Any])

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _decorate
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin."""

    def _decorate(method: _Method) -> _Method:
        return method


def with_callbacks(method: _Method) -> _Method:
    """Return ``fit`` with scikit-learn's callbacks, if it has any, and with the type it had before."""
    return cast("_Method", _decorate(method))


def callback_context(estimator: Any, max_iter: int) -> Any:
    """Return the root context of a fit, or None if no callback is set."""
    make = getattr(estimator, "_init_callback_context", None)
    if make is None or not hasattr(estimator, "_skl_callbacks"):
        return None
    return make(max_subtasks=max_iter if max_iter >= 0 else None)


class SklearnCallbacks:
    """Observer that passes iterations on to scikit-learn callbacks (scikit-learn ≥ 1.9).

    An iteration becomes a task, but at most one every ``EVERY`` seconds: a method that takes 100,000 tiny
    steps must not spend its time in callbacks. Only the first process of a team has callbacks and a context.
    The others help to make models.
    """

    def __init__(
        self,
        estimator: Any,
        context: Any,
        X: Any,
        y: Any,
        attributes: Callable[[], dict[str, Any]],
        team: Team = SOLO,
    ):
        self._context, self._attributes, self._last = context, attributes, -math.inf
        self._fit, self._team = {"estimator": estimator, "X": X, "y": y}, team

    def __call__(self, row: TraceRow) -> bool:
        now = time.perf_counter()
        if not self._team.agree(now - self._last >= EVERY):
            return False
        self._last = now
        # All processes of a team must take part in making a model, whether a callback asks for it or not.
        model = self._attributes if self._team.size == 1 else self._attributes()
        if self._context is None:
            return False
        task = self._context.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**self._fit)
        return bool(task.call_on_fit_task_end(**self._fit, reconstruction_attributes=model))


__all__ = ["CallbackSupportMixin", "SklearnCallbacks", "callback_context", "with_callbacks"]
