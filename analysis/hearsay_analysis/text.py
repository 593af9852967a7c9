"""Numbers as people read them, in the same words as the hearsay program prints them."""
import math
import re
import statistics

NO_NUMBER = "–"


# What a terminal obeys instead of showing it: control characters, and what turns the direction of writing. Lone
# surrogates stand for bytes that are no UTF-8.
_OBEYED = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def _escaped(match):
    character = match[0]
    if character == "\n":
        return "\\n"
    errors = "surrogateescape" if "\udc80" <= character <= "\udcff" else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", errors))


def shown(foreign):
    """Text of others in one line: line breaks as \\n, other control characters as \\x1b; the same as the hearsay
    program's."""
    return _OBEYED.sub(_escaped, str(foreign))


def shown_lines(text):
    """The same of a text of ours: its line breaks stay."""
    return "\n".join(map(shown, text.split("\n")))


def is_number(x):
    return x is not None and math.isfinite(x)


def fixed(x, decimals):
    return f"{x:.{decimals}f}" if is_number(x) else NO_NUMBER


def significant(x, digits):
    return f"{x:.{digits}g}" if is_number(x) else NO_NUMBER


def _decimals_of(x):
    """So many show two digits that count, one at least: 43.8, 1.2, 0.43, 0.043."""
    return 1 if x == 0 or not is_number(x) else max(1, 1 - math.floor(math.log10(abs(x))))


def spread(values, decimals=2):
    """ "97.56 ± 0.17": mean and sample standard deviation of what is not None, the latter where there are several.
    decimals: None for as many as show two digits of the mean, one at least."""
    values = [value for value in values if value is not None]
    if not values:
        return NO_NUMBER
    decimals = _decimals_of(statistics.mean(values)) if decimals is None else decimals
    deviation = f" ± {statistics.stdev(values):.{decimals}f}" if len(values) > 1 else ""
    return fixed(statistics.mean(values), decimals) + deviation


def percent(fraction, decimals=2):
    return f"{100 * fraction:.{decimals}f} %" if is_number(fraction) else NO_NUMBER


def number_of_percent(fraction):
    """Three digits that count, without the sign: 3.06, 45.7, 100.0."""
    if not is_number(fraction):
        return NO_NUMBER
    x = 100 * fraction
    return fixed(x, 2 if x < 9.995 else 1 if x < 999.95 else 0)


def count(n):
    return f"{n:,.0f}" if is_number(n) else NO_NUMBER


def _three_digits(x):
    return fixed(x, 2 if x < 9.995 else 1 if x < 99.95 else 0)


def byte_count(n):
    """Powers of 1000: 662 MB."""
    if not is_number(n):
        return NO_NUMBER
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while n >= 999.5 and len(units) > 1:
        n /= 1000
        units.pop(0)
    return f"{n:.0f} B" if units[0] == "B" else f"{_three_digits(n)} {units[0]}"


def duration(seconds):
    if not is_number(seconds):
        return NO_NUMBER
    if seconds < 0.9995e-3:
        return f"{_three_digits(1e6 * seconds)} µs"
    if seconds < 0.9995:
        return f"{_three_digits(1e3 * seconds)} ms"
    if seconds < 99.95:
        return f"{_three_digits(seconds)} s"
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def shortened(name, width=22):
    """The end of a path is what tells runs apart."""
    return name if len(name) <= width else "…" + name[1 - width :]


def listed(words):
    """a, b and c"""
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def counted(n, noun):
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
