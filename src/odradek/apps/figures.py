"""Formats of numbers in the command line, the console and the demo: counts, rates, sizes, times."""

import time


def count(value: float | None) -> str:
    """`12,345`, `–` for what isn't known."""
    return "–" if value is None else f"{value:,.0f}"


def rate(value: float | None, unit: str = "/s") -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}{unit}" if 0 < value < 10 else f"{short(value)}{unit}"


def short(value: float) -> str:
    """`999`, `12.3 k`, `4.56 M`."""
    for unit in ("", " k", " M", " G"):
        if abs(value) < 1000 or unit == " G":
            return f"{value:,.0f}{unit}" if not unit or value >= 100 else f"{value:.1f}{unit}"
        value /= 1000
    raise AssertionError("the last unit takes everything")


def size_text(bytes_: float | None, unit: str = "") -> str:
    if bytes_ is None:
        return "–"
    value = float(bytes_)
    for name in ("B", "KB", "MB", "GB", "TB"):
        if value < 1024 or name == "TB":
            break
        value /= 1024
    return f"{value:,.0f} {name}{unit}" if name == "B" or value >= 100 else f"{value:,.1f} {name}{unit}"


def duration_text(ms: float | None) -> str:
    """`850 ms`, `12 s`, `3 min`, `5 h`, `7 d`."""
    if ms is None:
        return "–"
    for length, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= length:
            value = ms / length
            return f"{value:,.0f} {unit}" if value >= 10 or value == int(value) else f"{value:,.1f} {unit}"
    return f"{ms:,.0f} ms"


def time_left_text(seconds: float) -> str:
    """`5 h 03 min`, `12 min 40 s`, `8 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{max(rest, 1)} s"


def clock_time(ms: int) -> str:
    """`14:03:07`, of the machine that the console runs on."""
    return time.strftime("%H:%M:%S", time.localtime(ms / 1000))


def zone() -> str:
    """Name of the time zone of shown times, such as `CET`."""
    return time.localtime().tm_zone


def moment(ms: int) -> str:
    """`2026-11-17 02:13:15.123`"""
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(ms / 1000))}.{ms % 1000:03d}"


def plural(number: int, thing: str, many: str = "") -> str:
    """`1 partition`, `3 partitions`."""
    return f"{number:,} {thing if number == 1 else many or thing + 's'}"


def retention(text: str | None, kind: str) -> str:
    """Text of `retention.ms` or `retention.bytes`; -1 is forever."""
    if text is None or not text.lstrip("-").isdecimal():
        return "–"
    value = int(text)
    if value < 0:
        return "for ever" if kind == "ms" else "no limit"
    return duration_text(value) if kind == "ms" else size_text(value)
