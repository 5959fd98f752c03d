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
