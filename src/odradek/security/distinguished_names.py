"""Names of certificates: the subject as Java writes it, and the rules that make a user's name of it.

`ssl.principal.mapping.rules` is a list of DEFAULT and RULE:pattern/replacement/[LU]; the first rule whose pattern
matches the whole name decides. Back references in replacements are written $1.
"""

import re

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass

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
_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_RULES_MAX = 100


class NoMatchingRule(Exception):
    """No rule applies to the name: the client is refused."""


def subject_of(certificate: bytes) -> str:
    """The subject of a certificate in DER, as Java's X500Principal.getName gives it: the most specific part first."""
    from cryptography.x509 import load_der_x509_certificate

    parts = []
    for rdn in reversed(list(load_der_x509_certificate(certificate).subject.rdns)):
        attributes = []
        for attribute in rdn:
            number = attribute.oid.dotted_string
            keyword = _KEYWORDS.get(number)
            if keyword is not None and isinstance(attribute.value, str):
                attributes.append(f"{keyword}={_escaped(attribute.value)}")
            else:
                attributes.append(f"{number}=#{_encoded(attribute.value)}")
        parts.append("+".join(attributes))
    return ",".join(parts)


def _encoded(value: str | bytes) -> str:
    """DER in hexadecimal. Java keeps the certificate's string type; here it is IA5String or UTF8String by content."""
    data = value if isinstance(value, bytes) else value.encode()
    tag = 0x16 if data.isascii() else 0x0C
    size = bytes([len(data)]) if len(data) < 0x80 else b"\x82" + len(data).to_bytes(2, "big")
    return (bytes([tag]) + size + data).hex()


def _escaped(value: str) -> str:
    text = re.sub(r'([,+"\\<>;])', r"\\\1", value)
    if text[:1] in ("#", " "):
        text = "\\" + text
    if text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1] + "\\ "
    return text


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
