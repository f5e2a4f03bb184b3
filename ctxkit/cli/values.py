"""Read the values of options, for both lanes. A bad value is a ValueError that says what a good one is."""

from __future__ import annotations

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "kB": 1000, "MB": 1000**2, "GB": 1000**3}
SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def limit(text: str) -> int | None:
    """Read a number with an optional unit (K M G are powers of 1024, kB MB GB of 1000); `none` is no limit."""
    if str(text) == "none":
        return None
    digits, unit = _split(str(text))
    if not digits.isdecimal() or unit not in UNITS:
        raise ValueError(f"{text!r} is not a limit: a number, with K, M, G, kB, MB or GB if need be, or 'none'")
    return int(digits) * UNITS[unit]


def duration(text: str) -> float | None:
    """Read seconds, or a number with ms, s, m, h or d; `none` is no limit."""
    if str(text) == "none":
        return None
    digits, unit = _split(str(text))
    whole, _, part = digits.partition(".")
    if not (whole + part).isdecimal() or unit not in SECONDS:
        raise ValueError(f"{text!r} is not a duration: seconds, or a number with ms, s, m, h or d, or 'none'")
    return float(digits) * SECONDS[unit]


PARSERS = {"limit": limit, "duration": duration}


def _split(text: str) -> tuple[str, str]:
    """Part a number from its unit; anything but ASCII is part of the unit, and so refused."""
    end = len(text)
    while end and text[end - 1] not in "0123456789.":
        end -= 1
    return (text[:end], text[end:]) if text.isascii() else ("", text)
