"""scikit-learn's callback protocol (1.9 and later), where it exists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's mixin where it does not exist."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Leave the method as it is."""
        return method


def callback_context(estimator: Any, max_iter: int) -> Any:
    """The root context of a fit, or None where no callback is set."""
    make = getattr(estimator, "_init_callback_context", None)
    if make is None or not hasattr(estimator, "_skl_callbacks"):
        return None
    return make(max_subtasks=max_iter if max_iter >= 0 else None)


__all__ = ["CallbackSupportMixin", "callback_context", "with_callbacks"]
