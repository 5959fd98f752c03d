"""scikit-learn's callback protocol, which exists in version 1.9 and later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for scikit-learn's mixin."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method unchanged."""
        return method


def callback_context(estimator: Any, max_iter: int) -> Any:
    """Return the root context of a fit, or None if no callback is set."""
    make = getattr(estimator, "_init_callback_context", None)
    if make is None or not hasattr(estimator, "_skl_callbacks"):
        return None
    return make(max_subtasks=max_iter if max_iter >= 0 else None)


__all__ = ["CallbackSupportMixin", "callback_context", "with_callbacks"]
