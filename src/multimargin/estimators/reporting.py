"""The report of a fitted estimator: one page for the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..system.atomic import prepare, replacing


class ReportMixin:
    """The method ``report`` of an estimator. What makes the page is imported when it is called."""

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        title: str | None = None,
        image_shape: tuple[int, ...] | str | None = "auto",
        scaling: Any = None,
    ) -> Path:
        """Write a page for the browser: what the fit proved, how it went, and how it does on data.

        The page is one HTML file that loads nothing else. It shows the certificate in words, the course of
        the fit and where its time went, support vectors, suspect labels and parameters; the grid of a
        search; the largest weights of a linear machine. With ``X`` and ``y`` it also shows accuracy,
        confusion matrix, scores, margins and the worst mistakes on them.

        Parameters
        ----------
        path : str or path-like
            The file. It is written whole or not at all, and replaces an older one.
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None
            Data to judge the model on, which should not have been trained on; kernel values for a
            precomputed kernel.
        y : array-like of shape (n_samples,) or None
            Their true labels. ``X`` and ``y`` are given both or not at all.
        title : str or None
            Title of the page; None is the name of the estimator.
        image_shape : "auto", tuple or None, default="auto"
            Shape of a row as an image: (height, width), or (height, width, 3) for colours. "auto" is a square
            if the values look like pixels, and None shows no images.
        scaling : Scaling or None, default=None
            How the training data were scaled: ``X`` is as it was before, and rows are shown so.

        Returns
        -------
        path : pathlib.Path
            The file.

        Examples
        --------
        >>> import os, tempfile
        >>> from multimargin import KernelSVC
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KernelSVC().fit(X[::2], y[::2])
        >>> path = os.path.join(tempfile.mkdtemp(), "iris.html")
        >>> model.report(path, X[1::2], y[1::2]).name
        'iris.html'
        """
        from ..report import page
        from .report_facts import subject_of

        file = Path(path)
        prepare(file, "report")
        content = page(subject_of(self, X, y, title, image_shape, scaling)).encode()
        with replacing(file) as opened:
            opened.write(content)
        return file
