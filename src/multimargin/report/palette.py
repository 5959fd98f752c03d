"""Colours of the page, for light and for dark.

Blue is what is right, orange what is wrong: the pair that people with any kind of colour vision can tell
apart. The steps of a scale have equal differences of lightness in OKLab (Ottosson 2020), so that equal steps
look equal.
"""

from __future__ import annotations

import math

LEVELS = 9
_BLUE, _ORANGE = 255.0, 50.0  # hues in degrees

_BASE = {  # name: (light, dark)
    "paper": ("#fdfdfc", "#15181b"),
    "raised": ("#f4f5f6", "#1e2226"),
    "ink": ("#1b1f24", "#e7eaed"),
    "muted": ("#59626c", "#a3adb8"),
    "rule": ("#dcdfe3", "#343a41"),
    "quiet": ("#c8cdd3", "#4d565f"),
    "axis": ("#8b949e", "#6b757f"),
    "accent": ("#1f5fa8", "#7fb3ea"),
    "soft": ("#a9c8e8", "#33577d"),
    "wrong": ("#b04a0c", "#f0975a"),
    "good": ("#1f5fa8", "#7fb3ea"),
}


def oklch(lightness: float, chroma: float, hue: float) -> str:
    """A colour of OKLab, given in polar form, as a hexadecimal sRGB value."""
    a, b = (chroma * f(math.radians(hue)) for f in (math.cos, math.sin))
    cone = (
        (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3,
        (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3,
        (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3,
    )
    matrix = (
        (4.0767416621, -3.3077115913, 0.2309699292),
        (-1.2684380046, 2.6097574011, -0.3413193965),
        (-0.0041960863, -0.7034186147, 1.7076147010),
    )
    linear = [sum(x * y for x, y in zip(row, cone, strict=True)) for row in matrix]
    return "#" + "".join(f"{round(255 * _encoded(value)):02x}" for value in linear)


def _encoded(value: float) -> float:
    """The sRGB value of a linear one."""
    value = min(1.0, max(0.0, value))
    return 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055


def ramp(hue: float, dark: bool) -> list[str]:
    """``LEVELS`` colours, from that of the page to a strong one, in equal steps of lightness."""
    first, last = (0.26, 0.84) if dark else (0.965, 0.42)
    shares = [k / (LEVELS - 1) for k in range(LEVELS)]
    return [oklch(first + (last - first) * t, 0.012 + 0.118 * math.sin(2.0 * t), hue) for t in shares]


def luminance(colour: str) -> float:
    """Relative luminance of a hexadecimal sRGB value, as WCAG 2 defines it."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, from 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _readable_on(colour: str) -> str:
    """Black or white, whichever can be read better."""
    return max(("#000000", "#ffffff"), key=lambda text: contrast(text, colour))


def variables(dark: bool) -> str:
    """All colours as declarations of CSS."""
    colours = {name: pair[dark] for name, pair in _BASE.items()}
    for name, hue in (("b", _BLUE), ("o", _ORANGE)):
        for k, colour in enumerate(ramp(hue, dark)):
            colours |= {f"{name}{k}": colour, f"on-{name}{k}": _readable_on(colour)}
    scheme = "dark" if dark else "light"
    return f"color-scheme:{scheme};" + "".join(f"--{name}:{value};" for name, value in colours.items())


def css() -> str:
    """The rules that choose: the reader's switch, else the system; paper is always light."""
    levels = "".join(
        f".{name}{k}{{fill:var(--{name}{k})}}svg .on-{name}{k}{{fill:var(--on-{name}{k})}}"
        for name in "bo"
        for k in range(LEVELS)
    )
    return (
        f":root{{{variables(False)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(True)}}}}}"
        f":root[data-theme=light]{{{variables(False)}}}:root[data-theme=dark]{{{variables(True)}}}"
        f"@media print{{:root,:root[data-theme]{{{variables(False)}}}}}"
        f"{levels}"
    )


def level(share: float) -> int:
    """The step of a scale for a share between 0 and 1; only 0 itself has the first."""
    return 0 if not share > 0 else min(LEVELS - 1, 1 + int(share * (LEVELS - 1)))
