"""Figures printed in the papers, as data."""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """One row of Table 2."""

    seconds_400: float
    kernel_400: float  # kernel elements evaluated with 400 MB of cache
    iterations: float
    seconds_40: float
    kernel_40: float  # with 40 MB


# L. Niu, Y. Yuan: A parallel decomposition algorithm for training multiclass kernel-based vector machines,
# Table 2. Seconds on one 2 GHz Xeon of a cluster node with 1 GB of memory, mean of three runs.
ACCURACY = {
    "satimage": 92.35,
    "shuttle": 99.7,
    "mnist": 96.26,
    "isolet": 96.6,
    "letter": 95.12,
    "vowel": 52.16,
    "glass": 68.28,
}
TABLE_2 = {
    "ψ-based": {
        "satimage": Printed(22.41, 11_890_235, 15_615, 54.23, 42_642_525),
        "shuttle": Printed(3.27, 1_420_000, 11_479, 3.75, 1_420_000),
        "mnist": Printed(89.83, 14_170_000, 17_892, 297.66, 65_700_000),
        "isolet": Printed(430.2, 24_927_048, 26_723, 1644.94, 138_988_878),
        "letter": Printed(300.93, 18_170_000, 38_596, 366.06, 139_765_000),
        "vowel": Printed(0.64, 231_264, 3_965, 0.63, 231_264),
        "glass": Printed(0.18, 20_887, 7_230, 0.18, 20_887),
    },
    "ℓ-based": {
        "satimage": Printed(21.02, 11_810_405, 15_117, 41.06, 33_346_765),
        "shuttle": Printed(2.06, 1_380_000, 6_774, 2.09, 1_380_000),
        "mnist": Printed(92.42, 14_095_000, 18_662, 240.96, 51_695_000),
        "isolet": Printed(456.94, 22_575_322, 30_476, 944.76, 70_364_630),
        "letter": Printed(242.41, 17_950_000, 31_165, 284.41, 94_865_000),
        "vowel": Printed(0.47, 230_736, 2_781, 0.48, 230_736),
        "glass": Printed(0.08, 20_099, 4_037, 0.08, 20_099),
    },
    "DASMC": {
        "satimage": Printed(29.84, 12_018_850, 650, 30.95, 15_957_130),
        "shuttle": Printed(2.48, 1_790_000, 74, 2.49, 1_790_000),
        "mnist": Printed(45.55, 14_405_000, 898, 64.99, 28_435_000),
        "isolet": Printed(225.07, 23_498_546, 1_451, 315.52, 43_641_048),
        "letter": Printed(89.36, 18_895_000, 1_233, 101.41, 50_995_000),
        "vowel": Printed(0.66, 240_240, 68, 0.68, 240_240),
        "glass": Printed(0.66, 22_127.2, 25.6, 0.66, 22_127.2),
    },
}


class FewPasses(NamedTuple):
    """One cell of Blondel et al.'s Table II: means over 10 splits."""

    accuracy: float
    accuracy_std: float
    seconds: float


# M. Blondel, A. Fujino, N. Ueda: Large-scale multiclass support vector machine training via Euclidean
# projection onto the simplex, Table II: data -> passes -> method. Their News20 has 130,088 features.
TABLE_II = {
    "News20": {
        1: {
            "sort": FewPasses(83.51, 1.04, 0.33),
            "pivot": FewPasses(83.85, 0.87, 0.31),
            "bisection": FewPasses(83.10, 0.76, 0.31),
            "smo": FewPasses(82.55, 1.38, 0.31),
            "frank-wolfe": FewPasses(81.23, 1.89, 0.27),
        },
        3: {
            "sort": FewPasses(89.20, 0.35, 0.91),
            "pivot": FewPasses(89.12, 0.39, 0.90),
            "bisection": FewPasses(89.10, 0.47, 0.94),
            "smo": FewPasses(88.87, 0.50, 0.96),
            "frank-wolfe": FewPasses(88.01, 0.42, 0.80),
        },
        5: {
            "sort": FewPasses(89.83, 0.21, 1.48),
            "pivot": FewPasses(89.87, 0.24, 1.47),
            "bisection": FewPasses(89.81, 0.23, 1.57),
            "smo": FewPasses(89.63, 0.13, 1.52),
            "frank-wolfe": FewPasses(89.14, 0.51, 1.41),
        },
    },
    "Sector": {
        1: {
            "sort": FewPasses(94.17, 0.27, 0.58),
            "pivot": FewPasses(93.96, 0.36, 0.56),
            "bisection": FewPasses(94.08, 0.30, 0.59),
            "smo": FewPasses(93.52, 0.41, 0.56),
            "frank-wolfe": FewPasses(93.57, 0.37, 0.48),
        },
        3: {
            "sort": FewPasses(94.98, 0.24, 1.69),
            "pivot": FewPasses(95.06, 0.28, 1.64),
            "bisection": FewPasses(95.02, 0.27, 1.71),
            "smo": FewPasses(94.78, 0.23, 1.67),
            "frank-wolfe": FewPasses(94.74, 0.17, 1.40),
        },
        5: {
            "sort": FewPasses(95.10, 0.27, 2.82),
            "pivot": FewPasses(95.07, 0.26, 2.69),
            "bisection": FewPasses(95.06, 0.26, 2.81),
            "smo": FewPasses(94.98, 0.22, 2.78),
            "frank-wolfe": FewPasses(94.95, 0.18, 2.32),
        },
    },
}


class Trained(NamedTuple):
    """One row of Didiot & Lauer's Table 2."""

    support: int | None  # not printed legibly for one
    error: float  # per cent of the test rows
    seconds: float


def minutes(m: float, s: float) -> float:
    return 60 * m + s


# E. Didiot, F. Lauer: Efficient optimization of multi-class support vector machines with MSVMpack, Table 2:
# data -> machine -> MSVMpack's row, and the other program's if there is one (BSVM, MCSVM). Seconds on two
# 4-core Xeons at 2.53 GHz. MSVMpack stops at dual / bound >= 0.98; letter with M-SVM² was stopped by hand.
MSVMPACK = {
    "ImageSeg": {
        "weston-watkins": Trained(None, 10.33, 1.2),
        "crammer-singer": Trained(141, 9.24, 3.3),
        "lee-lin-wahba": Trained(182, 10.57, 23),
        "msvm2": Trained(199, 10.48, 4.5),
    },
    "USPS_500": {
        "weston-watkins": Trained(385, 10.40, 2.5),
        "crammer-singer": Trained(292, 9.80, 30),
        "lee-lin-wahba": Trained(494, 11.40, minutes(1, 22)),
        "msvm2": Trained(500, 12.00, 22),
    },
    "MNIST": {
        "weston-watkins": Trained(14771, 1.41, minutes(170, 29)),
        "crammer-singer": Trained(14408, 1.44, minutes(49, 4)),
        "lee-lin-wahba": Trained(47906, 1.57, minutes(276, 45)),
        "msvm2": Trained(53773, 1.51, minutes(655, 10)),
    },
    "Letter": {
        "weston-watkins": Trained(7725, 4.75, minutes(24, 38)),
        "crammer-singer": Trained(7566, 6.92, minutes(6, 54)),
        "lee-lin-wahba": Trained(16000, 18.80, minutes(236, 8)),
        "msvm2": Trained(16000, 7.28, minutes(48 * 60, 0)),
    },
}
OTHER_PROGRAMS = {  # BSVM regularises the bias
    "ImageSeg": {"weston-watkins": Trained(98, 9.81, 0.1), "crammer-singer": Trained(97, 8.86, 0.1)},
    "USPS_500": {"weston-watkins": Trained(170, 10.00, 0.2), "crammer-singer": Trained(284, 9.80, 0.5)},
    "MNIST": {
        "weston-watkins": Trained(13572, 1.46, minutes(243, 29)),
        "crammer-singer": Trained(13805, 2.76, minutes(114, 26)),
    },
    "Letter": {
        "weston-watkins": Trained(7460, 5.85, minutes(6, 20)),
        "crammer-singer": Trained(6310, 3.90, minutes(2, 38)),
    },
}

# Their Table 4: data -> share of the kernel matrix that the cache holds -> seconds, Weston-Watkins.
TABLE_4 = {
    "Bio": {
        0.05: minutes(6, 0),
        0.1: minutes(6, 13),
        0.25: minutes(4, 29),
        0.5: minutes(3, 56),
        1.0: minutes(4, 0),
    },
    "CB513_01": {
        0.05: minutes(31, 49),
        0.1: minutes(30, 40),
        0.25: minutes(26, 6),
        0.5: minutes(23, 0),
        0.75: minutes(15, 52),
        0.92: minutes(10, 31),
    },
}


class Solved(NamedTuple):
    """One row of Serafini, Zanghirati & Zanni's tables; SV counts the bounded ones too."""

    iterations: int
    seconds: float
    support: int
    bounded: int


# T. Serafini, G. Zanghirati, L. Zanni: Large quadratic programs in training Gaussian support vector machines,
# Tables 1 and 2: rows -> inner solver -> one block of all rows. Seconds on an Alpha at 667 MHz.
ONE_BLOCK = {
    "mnist": {
        200: {"interior-point": Solved(13, 0.15, 76, 0), "vpm": Solved(57, 0.02, 76, 0)},
        400: {"interior-point": Solved(14, 1.2, 120, 0), "vpm": Solved(82, 0.1, 120, 0)},
        800: {"interior-point": Solved(15, 10.0, 176, 0), "vpm": Solved(124, 0.3, 176, 0)},
        1600: {"interior-point": Solved(16, 111.5, 239, 0), "vpm": Solved(232, 1.7, 238, 0)},
    },
    "adult": {
        1605: {"interior-point": Solved(15, 131.6, 691, 584), "vpm": Solved(136, 2.3, 691, 584)},
        2265: {"interior-point": Solved(15, 383.9, 1011, 847), "vpm": Solved(171, 5.8, 1011, 847)},
        3185: {"interior-point": Solved(15, 1081.4, 1300, 1109), "vpm": Solved(237, 14.6, 1299, 1113)},
    },
}


class Blocks(NamedTuple):
    """Parameters of one row of Tables 3 to 5."""

    method: str
    n_sp: int
    n_c: int
    inner: str
    cache: int  # MB


# Tables 3, 4 and 5: problem -> parameters -> what they print. Their adult sets have one row more than a8a and
# a9a have; that of 16,101 rows is not here.
DECOMPOSED = {
    "mnist 40,000": {
        Blocks("svm-light", 8, 4, "interior-point", 350): Solved(7724, 1710.6, 2714, 135),
        Blocks("svm-light", 40, 10, "interior-point", 350): Solved(2111, 1790.2, 2714, 135),
        Blocks("svm-light", 40, 20, "interior-point", 350): Solved(1596, 1848.6, 2716, 135),
        Blocks("svm-light", 100, 20, "interior-point", 350): Solved(865, 1828.7, 2713, 135),
        Blocks("svm-light", 100, 50, "interior-point", 350): Solved(575, 2138.3, 2717, 135),
        Blocks("svm-light", 200, 20, "interior-point", 350): Solved(685, 2059.9, 2714, 135),
        Blocks("svm-light", 200, 100, "interior-point", 350): Solved(250, 2624.8, 2717, 135),
        Blocks("svm-light", 200, 20, "vpm", 350): Solved(716, 1915.6, 2714, 135),
        Blocks("svm-light", 200, 100, "vpm", 350): Solved(257, 2511.3, 2716, 135),
        Blocks("vpdt", 2000, 500, "vpm", 350): Solved(25, 2551.0, 2715, 135),
        Blocks("vpdt", 2000, 600, "vpm", 350): Solved(21, 2385.5, 2716, 135),
        Blocks("vpdt", 2000, 700, "vpm", 350): Solved(20, 2343.1, 2714, 135),
        Blocks("vpdt", 2600, 600, "vpm", 350): Solved(8, 1036.1, 2714, 135),
        Blocks("vpdt", 2600, 800, "vpm", 350): Solved(8, 1150.2, 2715, 135),
        Blocks("vpdt", 2600, 1000, "vpm", 350): Solved(7, 1043.7, 2714, 135),
        Blocks("vpdt", 3000, 800, "vpm", 350): Solved(7, 1139.4, 2713, 136),
        Blocks("vpdt", 3000, 1000, "vpm", 350): Solved(7, 1197.8, 2715, 135),
        Blocks("vpdt", 3000, 1200, "vpm", 350): Solved(6, 1053.7, 2715, 136),
    },
    "mnist 60,000": {
        Blocks("svm-light", 8, 4, "interior-point", 50): Solved(9699, 4405.6, 3153, 158),
        Blocks("svm-light", 8, 4, "interior-point", 150): Solved(9527, 4063.6, 3151, 158),
        Blocks("svm-light", 8, 4, "interior-point", 250): Solved(9430, 3764.9, 3153, 159),
        Blocks("svm-light", 8, 4, "interior-point", 350): Solved(9334, 3434.6, 3155, 160),
        Blocks("svm-light", 8, 4, "interior-point", 450): Solved(9397, 3247.0, 3154, 160),
        Blocks("vpdt", 3100, 1200, "vpm", 50): Solved(7, 3602.4, 3156, 159),
        Blocks("vpdt", 3100, 1200, "vpm", 150): Solved(7, 3370.1, 3156, 159),
        Blocks("vpdt", 3100, 1200, "vpm", 250): Solved(7, 2972.4, 3154, 159),
        Blocks("vpdt", 3100, 1200, "vpm", 350): Solved(7, 2607.3, 3156, 159),
        Blocks("vpdt", 3100, 1200, "vpm", 450): Solved(7, 2333.6, 3156, 159),
    },
    "a8a": {
        Blocks("svm-light", 20, 10, "interior-point", 150): Solved(3002, 337.4, 8346, 7495),
        Blocks("vpdt", 900, 500, "vpm", 150): Solved(40, 241.4, 8377, 7482),
    },
    "a9a": {
        Blocks("svm-light", 20, 10, "interior-point", 150): Solved(4457, 742.9, 11699, 10615),
        Blocks("vpdt", 1300, 850, "vpm", 150): Solved(39, 593.3, 11767, 10558),
    },
}


class OnProcessors(NamedTuple):
    """One row of their Table 6, on a Cray T3E; speed-up and efficiency are relative to one processor."""

    n_sp: int
    n_c: int
    iterations: int
    seconds: float
    support: int
    bounded: int
    speedup: float | None
    efficiency: float | None


# Table 6: processors -> mnist with 60,000 rows, digit 8 against the rest.
TABLE_6 = {
    1: OnProcessors(3200, 800, 8, 9979.1, 3159, 158, None, None),
    4: OnProcessors(3200, 800, 8, 2511.1, 3159, 158, 4.0, 1.000),
    8: OnProcessors(3200, 800, 8, 1170.0, 3159, 158, 8.5, 1.063),
    16: OnProcessors(4000, 1200, 6, 629.1, 3161, 159, 15.9, 0.994),
    32: OnProcessors(4000, 1200, 6, 461.7, 3161, 159, 21.6, 0.675),
}

# Niu & Yuan, Figure 1: speed-up on 1, 2, 4, 8 and 16 processors. It is a drawing without numbers; this is
# what their Section 5.2 says of each dataset.
FIGURE_1 = {
    "mnist": "superlinear (joint cache); within an hour on 4 nodes",
    "letter": "sublinear: kernel values are only 6.35% of the time of one processor",
    "shuttle": "sublinear: kernel values take little of the time",
    "vehicle": "superlinear with 4 processors",
    "connect4": "superlinear (joint cache)",
    "protein": "superlinear (joint cache)",
}
FIGURE_1_MORE = "with more processors the messages cost more, and the speed-up drops"
