"""Write model-file-1/*.mm and model-file-1.json: model files of format version 1, and what they answered.

Run it once for a new version of the format, with the number in the names changed:

    python tests/reference/make_model_files.py
"""

import json
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_iris

from multimargin import KernelSVC, KernelSVCCV, LinearSVC, LinearSVCCV

HERE = Path(__file__).resolve().parent
X, y = load_iris(return_X_y=True)
X, y = X[::4], y[::4]
names = load_iris().target_names[y].astype(str)
bytes_, rows = np.round(10 * X).astype(np.uint8), X[::6]
MODELS = {
    "kernel": (KernelSVC(C=10.0).fit(X, names), rows),
    "bytes": (KernelSVC("weston-watkins", kernel="poly", degree=2, coef0=1.0).fit(bytes_, y), bytes_[::6]),
    "sparse": (KernelSVC(kernel="laplacian").fit(sparse.csr_array(X), y), rows),
    "c-svc": (KernelSVC("c-svc", class_weight={0: 1.0, 1: 2.0}).fit(X, (y == 1).astype(int)), rows),
    "linear": (LinearSVC().fit(X, y), rows),
    "search": (KernelSVCCV(Cs=[1, 10], gammas=[0.1, 0.5], cv=3).fit(X, names), rows),
    "isotonic": (KernelSVCCV(Cs=[1], gammas=[0.5], cv=3, calibration="isotonic").fit(X, names), rows),
    "linear search": (LinearSVCCV(Cs=[1, 10], cv=3, calibration="sigmoid").fit(X, y), rows),
}


def main():
    (HERE / "model-file-1").mkdir(exist_ok=True)
    cases = {}
    for name, (model, asked) in MODELS.items():
        model.save(HERE / "model-file-1" / f"{name}.mm")
        case = {"rows": asked, "decision": model.decision_function(asked), "labels": model.predict(asked)}
        if hasattr(model, "predict_proba"):
            case["probabilities"] = model.predict_proba(asked)
        cases[name] = {key: value.tolist() for key, value in case.items()}
    (HERE / "model-file-1.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main()
