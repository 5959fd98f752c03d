"""Sound calls of every native function, for the fuzzer: ``spoil(function, **arguments)`` may damage some."""

import numpy as np
import scipy.linalg.cython_blas
import scipy.linalg.cython_lapack
import scipy.sparse as sp

from multimargin import _core

MACHINES = ("crammer-singer", "weston-watkins", "lee-lin-wahba", "msvm2", "one-vs-rest")
UPDATES = ("sort", "frank-wolfe")
KINDS = ("linear", "rbf", "poly", "sigmoid", "laplacian")


BLAS, LAPACK = scipy.linalg.cython_blas.__pyx_capi__, scipy.linalg.cython_lapack.__pyx_capi__
LAPACK_NAMES = ("dpotrf", "dpotri", "dpotrs")
_core.set_blas(BLAS["sgemm"], BLAS["dgemm"])
_core.set_lapack(BLAS["dsyrk"], *(LAPACK[name] for name in LAPACK_NAMES))


class Calls:
    """Small random problems. A method makes one call, or some that belong together."""

    def __init__(self, numbers, rng):
        self.numbers, self.rng = numbers, rng
        self.n, self.d, self.m = rng.randrange(1, 9), rng.randrange(1, 7), rng.randrange(2, 6)

    def floats(self, *shape, dtype=np.float64):
        return self.numbers.normal(size=shape).astype(dtype)

    def dtype(self):
        return self.rng.choice((np.float32, np.float64))

    def ids(self, count, limit):
        return self.numbers.integers(0, max(limit, 1), count)

    def gram(self, q, dtype):
        F = self.floats(q, q + 1)
        return np.ascontiguousarray((F @ F.T).astype(dtype))

    def sparse_parts(self):
        S = sp.random_array((self.n, self.d), density=0.4, format="csr", rng=self.numbers)
        kind = self.rng.choice((np.int32, np.int64))
        return S.data.astype(self.dtype()), S.indices.astype(kind), S.indptr.astype(kind)

    def samples(self, spoil, form=None, n=None):
        """Samples of some layout."""
        n = self.n if n is None else n
        form = form or self.rng.randrange(7)
        whole = self.numbers.integers(0, 3, (n, self.d)).astype(
            self.rng.choice((np.uint8, np.int8, np.int16))
        )
        if form in (1, 2):
            make = _core.dense_product if form == 1 else _core.dense_direct
            array = self.floats(n, self.d, dtype=self.dtype())
            return spoil(make, X=array) if form == 1 else spoil(make, Xt=np.ascontiguousarray(array.T))
        if form == 3:
            return spoil(_core.integers, X=whole, scale=0.5)
        if form == 4:
            return spoil(_core.binary, X=(whole > 0).astype(np.uint8), scale=2.0)
        data, indices, indptr = self.sparse_parts()
        sizes = {"n": len(indptr) - 1, "d": self.d}
        if form == 5:
            return spoil(_core.binary, indices=indices, indptr=indptr, scale=1.0, **sizes)
        make = self.rng.choice((_core.sparse, _core.sparse_direct))
        return spoil(make, data=data, indices=indices, indptr=indptr, **sizes)

    def spec(self, spoil):
        return spoil(
            _core.KernelSpec, kind=self.rng.choice(KINDS), gamma=0.5, coef0=1.0, degree=3, offset=0.0
        )

    def point(self, m=None):
        """G, a feasible alpha, labels and costs."""
        m = self.m if m is None else m
        y = self.ids(self.n, m).astype(np.int32)
        return self.floats(self.n, m), np.zeros((self.n, m)), y, np.ones(self.n)

    def options(self, spoil):
        return spoil(
            _core.DescentOptions,
            eps=1e-3,
            max_sweeps=self.rng.choice((0, 3, 20)),
            most_work=self.rng.choice((10, 10**6)),
            update=self.rng.choice(UPDATES),
            seed=1,
            staged=self.rng.random() < 0.5,
            relax=1.2,
            width=self.rng.choice((0.5, float("inf"))),
            faces=self.rng.random() < 0.5,
            spans=self.rng.random() < 0.5,
            partners=self.rng.random() < 0.5,
            n_threads=self.rng.choice((1, 2)),
            seconds=1.0,
        )

    # -- platform, samples, kernels ------------------------------------------------------------------------
    def platform(self, spoil):
        spoil(_core.checksum, bytes=np.arange(self.n, dtype=np.uint8))
        for ask in (_core.openmp, _core.max_threads, _core.end_threads, _core.instruction_set):
            ask()
        assert _core.SUMMED_ROWS > 0
        spoil(_core.set_blas, sgemm=BLAS["sgemm"], dgemm=BLAS["dgemm"])
        spoil(_core.set_lapack, dsyrk=BLAS["dsyrk"], **{name: LAPACK[name] for name in LAPACK_NAMES})
        spoil(_core.set_integer_simd, name=_core.integer_simd())

    def grid(self, spoil):
        x = (self.numbers.integers(-3, 90, self.n) * 0.25).astype(self.dtype())
        spoil(_core.grid_scale, x=x)
        spoil(_core.grid_range, x=x, scale=0.25)
        out = np.zeros(self.n, self.rng.choice((np.uint8, np.int8, np.int16)))
        spoil(_core.to_grid, x=x, scale=0.25, out=out)
        spoil(_core.from_grid, whole=out, by=0.25, divides=self.rng.random() < 0.5, out=x)

    def block(self, spoil):
        a = self.samples(spoil)
        b = a if self.rng.random() < 0.5 else a.take(self.ids(self.n, a.n))
        if self.rng.random() < 0.3:
            spoil(a.set_scale, scale=np.ones(a.n))
        if self.rng.random() < 0.3:
            a = spoil(a.take, ids=self.ids(self.n, a.n))
        ids, rows = self.ids(self.n, a.n), np.arange(self.n)
        out = np.zeros((self.n, b.n), self.rng.choice((np.float32, np.float64, np.uint16)))
        spoil(
            _core.kernel_block,
            spec=self.spec(spoil),
            a=a,
            a_ids=ids,
            b=b,
            b_begin=0,
            b_end=b.n,
            out=out,
            out_rows=rows,
            n_threads=2,
        )

    def scores(self, spoil):
        sv = self.samples(spoil)
        x = sv.take(self.ids(self.n + 2, sv.n))
        arguments = {"spec": self.spec(spoil), "sv": sv, "coef": self.floats(sv.n, self.m), "x": x}
        out = np.zeros((x.n, self.m))
        if self.rng.random() < 0.5:
            spoil(_core.kernel_scores, **arguments, x_begin=0, x_end=x.n, scores=out, n_threads=2)
        else:
            more = {"ids": np.arange(x.n), "base": np.zeros_like(out), "G": out, "steady": True}
            spoil(_core.kernel_gradient, **arguments, **more, n_threads=2)

    def pair_gradient(self, spoil):
        samples, spec = self.samples(spoil), self.spec(spoil)
        shape = samples.n, self.m
        point = {"alpha": self.floats(*shape), "start": np.zeros(shape)}
        due, G = self.numbers.random(shape) < 0.5, np.zeros(shape)
        part = {"due": due, "begin": 0, "end": samples.n, "base": np.zeros(shape), "G": G, "steady": False}
        spoil(_core.pair_gradient, spec=spec, samples=samples, **point, **part, n_threads=2)

    def pair_table(self, spoil):
        G, alpha, y, _ = self.point()
        due = np.zeros(G.shape, bool)
        flags = {"has_due": np.zeros(self.n, bool), "has_moved": np.zeros(self.n, bool)}
        table = spoil(_core.PairTable, slack=G.copy(), due_at=G.copy(), due=due, **flags)
        some = self.rng.choice((None, np.ones(self.n, bool)))
        spoil(table.find_due, alpha=alpha, start=G, takes_part=some, drift=0.1, worst=0.1)
        spoil(table.measure, G=G, y=y, solved=np.zeros(self.n, bool), drift=0.1, rest=0.01)

    def square_scores(self, spoil):
        x = self.samples(spoil)
        tile = _core.SQUARE_TILE
        begin, end = self.rng.choice(((0, x.n), (0, tile), (0, 0), (tile, 2 * tile)))
        common = {"spec": self.spec(spoil), "x": x, "coef": self.floats(x.n, self.m)}
        sums = np.zeros((x.n, self.m))
        spoil(_core.square_scores, **common, begin=begin, end=end, scores=sums, n_threads=2)

    # -- state ---------------------------------------------------------------------------------------------
    def measure(self, spoil):
        machine = self.rng.choice((*MACHINES, "c-svc"))
        G, alpha, y, C = self.point(1 if machine == "c-svc" else None)
        y = np.minimum(y, 1) if machine == "c-svc" else y
        psi, gain = np.zeros(self.n), np.zeros(self.n)
        ids = self.rng.choice((None, self.ids(3, self.n)))
        arguments = {"machine": machine, "G": G, "y": y, "n_threads": 2}
        spoil(_core.measure, **arguments, alpha=alpha, C=C, ids=ids, psi=psi, gain=gain)
        spoil(_core.slack, **arguments, ids=self.ids(3, self.n), slack=psi)
        spoil(_core.rows_not_zero, A=G, found=np.zeros(self.n, bool))

    def gradient(self, spoil):
        G, rows = self.floats(self.n, self.m), self.floats(4, self.n, dtype=self.dtype())
        rows = self.rng.choice((rows, np.full((4, self.n), 30000, np.uint16)))
        slots = self.ids(3, 4)
        spoil(_core.update_gradient, G=G, rows=rows, slots=slots, delta=self.floats(3, self.m), n_threads=2)

    def one_sample(self, spoil):
        G, alpha, y, C = self.point()
        names = {"machine": self.rng.choice(MACHINES), "update": self.rng.choice(UPDATES)}
        spoil(_core.update_samples, **names, alpha=alpha, G=G, y=y, C=C, kii=np.ones(self.n), seed=3)

    def kept_block(self, spoil):
        values = np.zeros(self.n * (self.n + 2), self.rng.choice((np.float32, np.float64, np.uint16)))
        sizes = {"rows": self.n, "columns": self.n, "old_stride": self.n, "new_stride": self.n + 2}
        spoil(_core.widen_block, values=values, **sizes, n_threads=2)
        K = values.reshape(self.n, self.n + 2)
        spoil(_core.retain_block, K=K, kept=np.arange(0, self.n, 2))
        rows = np.zeros((4, 9), K.dtype)
        old = self.n // 2
        slots, members = self.ids(self.n - old, 4), self.ids(self.n, 9)
        spoil(_core.extend_block, K=K, old=old, rows=rows, slots=slots, members=members, n_threads=2)

    # -- solvers of blocks ---------------------------------------------------------------------------------
    def descent(self, spoil):
        G, alpha, y, C = self.point()
        K = self.gram(self.n, self.dtype())
        if self.rng.random() < 0.2:
            K = np.full((self.n, self.n), 20000, np.uint16)
        common = {"diag": np.ones(self.n), "G": G, "alpha": alpha, "y": y, "C": C}
        room = self.rng.choice((None, np.zeros(2 * self.n * self.n, K.dtype)))
        options = self.options(spoil)
        spoil(
            _core.coordinate_descent,
            machine=self.rng.choice(MACHINES),
            K=K,
            **common,
            options=options,
            room=room,
        )

    def descent_of_samples(self, spoil):
        samples = self.samples(spoil, self.rng.choice((1, 2, 3, 4)))
        kernel = spoil(_core.WorkingSetKernel, spec=self.spec(spoil), samples=samples, n_threads=2)
        G, alpha, y, C = self.point()
        common = {"diag": np.ones(self.n), "G": G, "alpha": alpha, "y": y, "C": C}
        room = np.zeros(2 * self.n * self.n, self.dtype())
        machine = self.rng.choice(("crammer-singer", "weston-watkins"))
        options = self.options(spoil)
        spoil(
            _core.descent_from_samples, machine=machine, kernel=kernel, **common, options=options, room=room
        )

    def class_descent_of_samples(self, spoil):
        samples = self.samples(spoil, self.rng.choice((1, 2, 3, 4)))
        kernel = spoil(_core.WorkingSetKernel, spec=self.spec(spoil), samples=samples, n_threads=2)
        G, alpha, y, C = self.point()
        common = {"diag": np.ones(self.n), "G": G, "alpha": alpha, "y": y, "C": C}
        dtype = self.rng.choice(("uint16", "float32", "float64"))
        options = self.options(spoil)
        spoil(_core.class_descent_from_samples, kernel=kernel, **common, options=options, dtype=dtype)

    def class_descent(self, spoil):
        G, alpha, y, C = self.point()
        kept = spoil(_core.KeptClasses, m=self.m, most_values=200)
        rows = self.gram(self.n + 2, self.dtype())
        slots, ids = np.arange(self.n), np.arange(self.n)
        common = {"diag": np.ones(self.n), "G": G, "alpha": alpha, "y": y, "C": C}
        options = self.options(spoil)
        spoil(_core.class_descent, kept=kept, rows=rows, slots=slots, ids=ids, **common, options=options)

    def shared_descent(self, spoil):
        G, alpha, y, C = self.point()
        store = self.gram(self.n, self.dtype())
        every = np.arange(self.n)
        known = np.zeros(self.n, np.int64)
        rows = spoil(
            _core.RowSource,
            K=np.zeros((self.n, self.n), store.dtype),
            known=known,
            store=store,
            slots=every,
            columns=every,
            places=every,
            diag=np.ones(self.n),
        )
        spoil(rows.complete, ids=self.ids(2, self.n))
        others = spoil(
            _core.SharedArguments, batch=2, rank=0, ranks=1, exchange=lambda part: np.array(part).ravel()
        )
        machine = self.rng.choice(("crammer-singer", "weston-watkins"))
        common = {"G": G, "alpha": alpha, "y": y, "C": C, "options": self.options(spoil), "others": others}
        spoil(_core.shared_descent, machine=machine, rows=rows, **common, room=None)

    def column(self):
        """A block of one column with bounds."""
        q = self.n
        low, high = -np.ones(q), np.ones(q)
        return self.gram(q, self.dtype()), self.floats(q, 1), np.zeros((q, 1)), low, high

    def pairs(self, spoil):
        K, G, alpha, low, high = self.column()
        common = {"diag": np.ones(self.n), "G": G, "alpha": alpha, "low": low, "high": high}
        limits = {"eps": 1e-3, "max_iter": 50, "most_work": 10**6, "seconds": 1.0}
        more = {}
        if self.rng.random() < 0.4:
            every = np.arange(self.n)
            more = {"store": K.copy(), "slots": every, "columns": every}
        spoil(_core.pair_descent, K=K, **common, **limits, kernel=None, **more)

    def gradient_options(self, spoil):
        sizes = {"rho_min": 1e-10, "rho_max": 1e10, "memory": 3, "patience": 4, "seconds": 1.0}
        return spoil(
            _core.GradientOptions,
            eps=1e-3,
            max_iter=30,
            initial_step=self.rng.choice(("projected", "ell")),
            **sizes,
        )

    def projected(self, spoil):
        G, alpha, y, C = self.point()
        K, q = self.gram(self.n, self.dtype()), self.n
        exchange = self.rng.choice((None, lambda part: np.zeros((q, part.shape[1]))))
        common = {"G": G, "alpha": alpha, "y": y, "C": C, "n_threads": 2, "exchange": exchange}
        options = self.gradient_options(spoil)
        spoil(_core.projected_gradient, machine=self.rng.choice(MACHINES), K=K, **common, options=options)

    def balanced(self, spoil):
        K, G, alpha, low, high = self.column()
        method = self.rng.choice(("pardalos-kovoor", "dai-fletcher"))
        common = {"K": K, "G": G, "alpha": alpha, "low": low, "high": high, "projection": method}
        if self.rng.random() < 0.5:
            spoil(_core.balanced_gradient, **common, options=self.gradient_options(spoil), n_threads=2)
        else:
            limits = {"eps": 1e-3, "max_iter": 30, "rho": 1.0, "period": 3, "flat": 1e-9, "seconds": 1.0}
            options = spoil(_core.ProjectionOptions, **limits)
            spoil(_core.variable_projection, **common, options=options, n_threads=2)
        out = np.zeros(self.n)
        bounds = {"low": low, "high": high, "total": 0.0, "method": method, "out": out}
        spoil(_core.project_balanced, w=G.ravel(), **bounds)

    # -- Newton --------------------------------------------------------------------------------------------
    def newton(self, spoil):
        p = 3
        F, face = self.floats(self.n, p), self.numbers.random((self.n, self.m)) < 0.5
        sigma, g = np.ones(self.n), self.floats(p, self.m)
        coupled = self.rng.random() < 0.5
        spoil(_core.face_sizes, face=face, coupled=coupled, sizes=np.zeros(self.m + 2))
        pairs = _core.NewtonPairs()
        direction = np.zeros((p, self.m))
        common = {"F": F, "face": face, "sigma": sigma}
        spoil(pairs.solve, **common, g=g, coupled=coupled, direction=direction)
        size = p * self.m
        spoil(_core.newton_columns, **common, A=np.zeros((size, size)))
        A = self.gram(self.n, np.float64)
        pivots, factor = np.zeros(self.n, np.int64), np.zeros((self.n, self.n))
        spoil(_core.find_pivots, A=A, least=1e-6, pivots=pivots, factor=factor)

    def model(self, spoil):
        G, alpha, y, C = self.point()
        machine = self.rng.choice(("crammer-singer", "weston-watkins", "one-vs-rest"))
        spoil(_core.face, machine=machine, alpha=alpha, y=y, C=C, face=np.zeros(alpha.shape, bool))
        shaped = {"FU": self.floats(*G.shape), "dFU": self.floats(*G.shape), "out": np.zeros_like(G)}
        line = {
            "first": 1.0,
            "along": -1.0,
            "squared": 1.0,
            "sum": self.rng.choice((None, lambda value: value)),
        }
        common = {"alpha": alpha, "G": G, "sigma": np.ones(self.n), "y": y, "C": C}
        spoil(_core.model_search, machine=machine, **common, **shaped, **line)
        F = self.floats(self.n, 3)
        spoil(_core.model_back, F=F, alpha=alpha, before=G, out=np.zeros((3, self.m)))

    # -- the linear machine --------------------------------------------------------------------------------
    def linear(self, spoil):
        _, _, y, C = self.point()
        rest = {
            "y": y,
            "C": C,
            "m": self.m,
            "constant": self.rng.choice((0.0, 1.0)),
            "n_threads": 2,
            "parts": 1,
        }
        machine = self.rng.choice(("crammer-singer", "weston-watkins", "one-vs-rest"))
        if self.rng.random() < 0.5:
            X = self.floats(self.n, self.d, dtype=self.dtype())
            problem = spoil(_core.LinearProblem, machine=machine, X=X, **rest)
        else:
            data, indices, indptr = self.sparse_parts()
            parts = {"data": data, "indices": indices, "indptr": indptr, "d": self.d}
            problem = spoil(_core.LinearProblem, machine=machine, **parts, **rest)
        features = self.d + (rest["constant"] != 0.0)
        weights = np.zeros((features, 8), self.dtype())
        rule = {
            "update": self.rng.choice(UPDATES),
            "tau": 1e-6,
            "seed": 1,
            "together": self.rng.random() < 0.5,
        }
        runner = spoil(_core.PassRunner, problem=problem, weights=weights, **rule)
        how = {"all": True, "threshold": 0.0, "relax": 1.0, "margin": 0.0, "shuffle": True, "stretch": 1.0}
        spoil(runner.begin, **how)
        spoil(runner.go_on, pieces=2)
        problem.norms(), problem.conjugate(), problem.support()
        spoil(problem.measure, weights=weights, step=1)
        indptr, classes, values = problem.dual()
        spoil(problem.set_dual, indptr=indptr, classes=classes, values=values)
        spoil(problem.rebuild, weights=weights)
        spoil(_core.squared_norm, weights=weights, n_threads=2)

    def shared_passes(self, spoil):
        _, _, y, C = self.point()
        X = self.floats(self.n, self.d, dtype=self.dtype())
        rest = {"y": y, "C": C, "m": self.m, "constant": 1.0, "n_threads": 1, "parts": 2}
        problem = spoil(_core.LinearProblem, machine="crammer-singer", X=X, **rest)
        weights = np.zeros((self.d + 1, 8), np.float64)
        rule = {"update": "sort", "tau": 1e-6, "seed": 1, "together": True}
        runner = spoil(_core.PassRunner, problem=problem, weights=weights, **rule)
        runner.part()
        runner.share()
        how = {"all": True, "threshold": 0.0, "relax": 1.0, "margin": 0.0, "shuffle": True, "stretch": 1.0}
        spoil(runner.begin, **how)
        spoil(runner.go_on, pieces=1)
        message = spoil(runner.steps, stretch=1.0)
        spoil(runner.make, message=message, factor=1.0)

    # -- files ---------------------------------------------------------------------------------------------
    def libsvm(self, spoil):
        reader = spoil(_core.LibsvmReader, labelled=True, least_index=0, most_index=1 << 40)
        lines = [b"1 1:2 3:-4", b"2 2:0.5", b"# none", b"a 1:1e3"]
        text = b"".join(self.rng.choice(lines) + b"\n" for _ in range(self.n))
        spoil(reader.feed, block=np.frombuffer(text, np.uint8), n_threads=2)
        assert reader.lines >= reader.rows and reader.nbytes >= 0
        assert len(reader.range) == 3 and len(reader.indices) == len(reader.places) == 2
        spoil(reader.words, column=0)
        spoil(reader.codes, column=0, out=np.zeros(reader.rows, np.int64))
        if self.rng.random() < 0.5:
            out = np.zeros((reader.rows, 3), self.rng.choice(("f8", "f4", "i2", "i8")))
            spoil(reader.dense, out=out, base=1, n_threads=2)
        else:
            kind = self.rng.choice((np.int32, np.int64))
            places = {"indices": np.zeros(reader.entries, kind), "indptr": np.zeros(reader.rows + 1, kind)}
            spoil(reader.csr, data=np.zeros(reader.entries), **places, base=1, n_threads=2)

    def table(self, spoil):
        columns = self.numbers.integers(0, 3, self.rng.randrange(1, 4)).astype(np.uint8)
        reader = spoil(_core.TableReader, delimiter=44, quotes='"', comment=37, columns=columns)
        words = {0: (b"1", b"-2.5", b"1e3"), 1: (b"x", b'"a b"', b"3"), 2: (b"", b"z")}
        rows = (b",".join(self.rng.choice(words[int(kind)]) for kind in columns) for _ in range(self.n))
        spoil(reader.feed, block=np.frombuffer(b"\n".join(rows) + b"\n", np.uint8), n_threads=2)
        numbers = int((columns == 0).sum())
        spoil(reader.values, out=np.zeros((reader.rows, numbers)), n_threads=2)
        if 1 in columns:
            spoil(reader.words, column=0)

    def writer(self, spoil):
        texts = {"before": [b"a ", b"b "], "after": [b"\n"]}
        style = spoil(_core.TextStyle, **texts, separator=b" ", pair=b":", leading=self.rng.random() < 0.5)
        codes = self.ids(self.n, 2)
        kind = self.rng.choice(("u1", "i1", "i2", "i4", "i8", "f4", "f8"))
        if self.rng.random() < 0.5:
            X = self.numbers.integers(0, 9, (self.n, self.d)).astype(kind)
            spoil(_core.write_dense, X=X, codes=codes, style=style)
        else:
            data, indices, indptr = self.sparse_parts()
            places = {"indices": indices.astype(np.int64), "indptr": indptr.astype(np.int64)}
            spoil(_core.write_sparse, data=data.astype(kind), **places, base=1, codes=codes, style=style)


NAMES = [
    name for name in vars(Calls) if name[0] != "_" and name not in (
        "floats", "dtype", "ids", "gram", "sparse_parts", "samples", "spec", "point", "options", "column",
        "gradient_options",
    )
]  # fmt: skip
