"""Names of certificates: the subject as Java writes it, and the rules that make a user's name of it.

`ssl.principal.mapping.rules` is a list of DEFAULT and RULE:pattern/replacement/[LU]; the first rule whose pattern
matches the whole name decides. Back references in replacements are written $1.
"""

import re

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.der import SEQUENCE, SET, Element, element_at, elements_of

# Keywords of RFC 2253. Java writes any other attribute as its number with the encoded value.
_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: Java reads the bytes of all as UTF-8."""
_SPECIAL, _BLANKS = frozenset(',=+<>#;"\\'), " \r"
_VERSION, _SUBJECT = 0xA0, 4
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_RULES_MAX = 100
_NAME_CHARS_MAX = 1024  # a pattern may take a time that is a power of the name's length


class NoMatchingRule(Exception):
    """No rule matches the name: the client is refused."""


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, as Java's X500Principal.getName gives it: the most specific part first.

    To the letter, because ACLs name it. ValueError for what is no certificate.
    """
    (tbs, *_) = elements_of(certificate, element_at(certificate, 0, len(certificate)), SEQUENCE)
    fields = [field for field in elements_of(certificate, tbs, SEQUENCE) if field.tag != _VERSION]
    if len(fields) <= _SUBJECT:
        raise ValueError("the certificate has no subject")
    rdns = elements_of(certificate, fields[_SUBJECT], SEQUENCE)
    return ",".join(
        "+".join(_attribute(certificate, attribute) for attribute in elements_of(certificate, rdn, SET))
        for rdn in reversed(rdns)
    )


def _attribute(data: bytes, attribute: Element) -> str:
    kind, value = elements_of(data, attribute, SEQUENCE)
    number = _object_number(data[kind.first : kind.end])
    keyword = _KEYWORDS.get(number)
    if keyword is None or value.tag not in _TEXTS:
        return f"{number}=#{data[value.begin : value.end].hex()}"
    return f"{keyword}={_escaped(data[value.first : value.end].decode(errors='replace'))}"


def _object_number(data: bytes) -> str:
    """1.2.840.113549.1.9.1"""
    numbers, value = [], 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not numbers or data[-1] >= 0x80:
        raise ValueError("the name of an attribute is malformed")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(value: str) -> str:
    begins, ends = len(value) - len(value.lstrip(_BLANKS)), len(value.rstrip(_BLANKS))
    return "".join(
        "\\00" if c == "\0" else f"\\{c}" if c in _SPECIAL or not begins <= at < ends else c
        for at, c in enumerate(value)
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None  # None: DEFAULT, the name as it is
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        result = expanded(self.replacement, found)
        return result.lower() if self.case == "L" else result.upper() if self.case == "U" else result


def expanded(replacement: str, found: re.Match[str]) -> str:
    """The replacement with its back references filled in, as Java writes them."""
    return re.sub(r"\\(.)|\$(\d+)", lambda part: _replaced(part, found), replacement)


def _replaced(part: re.Match[str], found: re.Match[str]) -> str:
    """A back reference takes as many digits as name a group; one that names none stands for itself."""
    if part[1] is not None:
        return part[1]
    digits = part[2]
    for size in range(len(digits), 0, -1):
        if int(digits[:size]) <= found.re.groups:
            return (found[int(digits[:size])] or "") + digits[size:]
    return part[0]


class PrincipalMapper:
    def __init__(self, rules: str) -> None:
        """ConfigError names a rule that can't be read."""
        self._rules = _parse(rules.strip() or "DEFAULT")

    def name_of(self, subject: str) -> str:
        """NoMatchingRule refuses the client."""
        if len(subject) > _NAME_CHARS_MAX:
            raise NoMatchingRule(f"the subject has more than {_NAME_CHARS_MAX} characters: {subject[:80]}")
        for rule in self._rules:
            name = rule.apply(subject)
            if name is not None:
                return name
        raise NoMatchingRule(f"no rule of ssl.principal.mapping.rules applies to {subject}")


def _parse(text: str) -> list[_Rule]:
    rules: list[_Rule] = []
    at = 0
    pattern = re.compile(rf"\s*(?:{_RULE})?\s*(?:,|$)")
    while at < len(text):
        found = pattern.match(text, at)
        if found is None or len(rules) >= _RULES_MAX:
            raise ConfigError(f"Invalid value {text} for configuration ssl.principal.mapping.rules: at {text[at:]!r}")
        if found[1]:
            rules.append(_Rule(None))
        elif found[2] is not None:
            try:
                rules.append(_Rule(re.compile(found[2]), found[3], found[4] or ""))
            except re.error as error:
                raise ConfigError(
                    f"Invalid value {text} for configuration ssl.principal.mapping.rules: {error}"
                ) from None
        at = found.end()
    return rules
