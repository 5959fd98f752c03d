"""The last block of ``dasmc``, and what comes between it and the proof."""

import numpy as np
from sklearn.datasets import load_digits

from multimargin import KernelSVC
from multimargin.engines import CpuEngine

SIZE = 40


def fitted(monkeypatch, disturb):
    """Digits by ``dasmc``: the model, the sizes of its blocks, and its proofs.

    With ``disturb``, ten samples lose their coefficients right after the first block that settles.
    """
    proofs, sizes = [], []
    prove, improve = CpuEngine.prove, CpuEngine.improve

    def proved(self):
        proofs.append(prove(self))
        return proofs[-1]

    def improved(self, W, *rest, **named):
        made = improve(self, W, *rest, **named)
        if disturb and len(W) > SIZE and max(sizes) <= SIZE:
            alpha = self.state.alpha.copy()
            alpha[self.support()[:10]] = 0.0
            self.place(alpha)
        sizes.append(len(W))
        return made

    monkeypatch.setattr(CpuEngine, "prove", proved)
    monkeypatch.setattr(CpuEngine, "improve", improved)
    X, y = load_digits(return_X_y=True)
    model = KernelSVC(solver="dasmc", working_set_size=SIZE, engine="cpu").fit(X / 16, y)
    return model, np.array(sizes), proofs


def test_violators_after_the_last_block_are_solved_before_the_proof(monkeypatch):
    model, sizes, proofs = fitted(monkeypatch, disturb=True)
    assert model.status_.converged
    assert len(proofs) == 1
    assert proofs[0].gain <= 1e-3
    assert np.flatnonzero(sizes > SIZE)[0] < len(sizes) - 1


def test_all_support_vectors_are_settled_once(monkeypatch):
    """If few of them violate later, these alone are."""
    model, sizes, proofs = fitted(monkeypatch, disturb=False)
    assert model.status_.converged
    assert len(proofs) == 1
    assert np.count_nonzero(sizes > len(model.support_) / 2) == 1
    assert sizes.max() >= len(model.support_)
    assert proofs[0].violation <= 1e-3
