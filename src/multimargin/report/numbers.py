"""Numbers as a reader sees them: three or four digits, aligned, with a unit."""

from __future__ import annotations

import math

MINUS, TIMES, NONE = "\u2212", "\u202f×\u202f10", "–"  # the narrow space keeps a number in one line
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def short(value: float, digits: int = 4) -> str:
    """A number with so many significant digits; a power of ten if it is very large or very small.

    Examples
    --------
    >>> short(189.26323), short(-0.00001234), short(5)
    ('189.3', '−1.234\u202f×\u202f10⁻⁵', '5')
    """
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return f"{MINUS}∞" if value < 0 else "∞"
    if value == 0:
        return "0"
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", MINUS)
    while digits > 1 and float(f"{value:.{digits - 1}g}") == value:  # no zeros at the end of an exact number
        digits -= 1
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 < power < 6:
        return f"{value:,.{max(0, digits - 1 - power)}f}".replace("-", MINUS)
    return f"{mantissa}{TIMES}{power_text(power)}".replace("-", MINUS)


def apart(first: float, second: float, digits: int = 4) -> tuple[str, str]:
    """Two numbers with as many digits as it takes to tell them apart, up to 12.

    Examples
    --------
    >>> apart(163.6926, 163.6762)
    ('163.69', '163.68')
    """
    while digits < 12 and short(first, digits) == short(second, digits):
        digits += 1
    return short(first, digits), short(second, digits)


def power_text(power: int) -> str:
    """An exponent in raised digits."""
    return str(power).translate(_SUPERSCRIPT)


def count(value: int) -> str:
    """A whole number.

    Examples
    --------
    >>> count(12345)
    '12,345'
    """
    return f"{value:,}".replace("-", MINUS)


def counted(value: int, thing: str) -> str:
    """A number of things that have a plural in s.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count(value)} {thing}{'' if value == 1 else 's'}"


def percent(share: float) -> str:
    """A share of one.

    Examples
    --------
    >>> percent(0.98765), percent(0.0000712), percent(1.0)
    ('98.77%', '0.0071%', '100.00%')
    """
    if not math.isfinite(share):
        return NONE
    if share == 0 or abs(share) >= 0.01:
        return f"{100 * share:.2f}%".replace("-", MINUS)
    return f"{short(100 * share, 2)}%"


def fixed(value: float, decimals: int = 3) -> str:
    """A number with so many decimals, for columns that are read downwards."""
    if not math.isfinite(value):
        return short(value)
    text = f"{value:,.{decimals}f}"
    return (text[1:] if float(text.replace(",", "")) == 0 and text[0] == "-" else text).replace("-", MINUS)


def seconds(value: float) -> str:
    """A time.

    Examples
    --------
    >>> seconds(0.0431), seconds(12.345), seconds(754)
    ('43.1 ms', '12.3 s', '12 min 34 s')
    """
    if value < 1e-3:
        return f"{short(1e6 * value, 3)} µs"
    if value < 1:
        return f"{short(1e3 * value, 3)} ms"
    if value < 60:
        return f"{short(value, 3)} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size(count_of_bytes: int) -> str:
    """An amount of memory.

    Examples
    --------
    >>> size(3_200_000)
    '3.20 MB'
    """
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if count_of_bytes >= 10**power:
            return (
                f"{count_of_bytes / 10**power:.3g} {unit}"
                if count_of_bytes >= 10 ** (power + 2)
                else (f"{count_of_bytes / 10**power:.2f} {unit}")
            )
    return f"{count_of_bytes} bytes"
