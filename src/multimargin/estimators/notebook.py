"""What a notebook shows of an estimator: scikit-learn's diagram, and under it the certificate of a fit."""

from __future__ import annotations

from typing import Any

from ..system.versions import DOCUMENTATION


class NotebookMixin:
    """Adds the certificate to scikit-learn's two hooks of notebooks, in every version from 1.6 on."""

    _doc_link_module = "multimargin"
    _doc_link_template = DOCUMENTATION

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._certificate_card()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._certificate_card()
        return bundle

    def _certificate_card(self) -> str:
        """The card of a fitted model, or nothing if there is no certificate."""
        from ..report import card
        from .report_facts import certificate_of

        proof = certificate_of(self)
        return "" if proof is None else card(proof)
