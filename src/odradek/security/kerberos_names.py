"""Names of Kerberos principals, and the rules that make a user's name of them. Pure.

`sasl.kerberos.principal.to.local.rules` is a list of DEFAULT and RULE:[N:FORMAT](PATTERN)s/FROM/TO/g/L, as in Kafka:
N is the number of components before the realm, FORMAT has $0 for the realm and $1, $2 for them, PATTERN must match the
whole of it. DEFAULT is the first component, for principals of the default realm. The first rule that fits decides.
"""

import re
from collections.abc import Sequence

from odradek.base.errors import ConfigError
from odradek.base.value_classes import dataclass
from odradek.security.distinguished_names import NoMatchingRule, expanded
from odradek.security.kerberos_keys import RULES_KEY

_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(r"(DEFAULT)|RULE:\[(\d{1,3}):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?([LU])?")
_PARAMETER = re.compile(r"\$(\d*)")
_NAME_CHARS_MAX = 1024
_RULES_MAX = 100


@dataclass(frozen=True, slots=True)
class KerberosName:
    service: str
    host: str | None
    realm: str | None

    @classmethod
    def parse(cls, text: str) -> "KerberosName":
        """ValueError for more than two components, and for escaped characters: what they mean depends on the reader."""
        if len(text) > _NAME_CHARS_MAX or "\\" in text:
            raise ValueError(f"malformed Kerberos name: {text[:80]}")
        found = _NAME.fullmatch(text)
        if found is not None:
            return cls(found[1], found[2], found[3])
        if "@" in text or "/" in text or not text:
            raise ValueError(f"malformed Kerberos name: {text[:80]}")
        return cls(text, None, None)


@dataclass(frozen=True, slots=True)
class _Rule:
    components: int
    format: str
    pattern: re.Pattern[str] | None
    old: re.Pattern[str] | None
    new: str
    repeats: bool
    case: str

    def apply(self, parts: Sequence[str]) -> str | None:
        if len(parts) - 1 != self.components:
            return None
        base = _PARAMETER.sub(lambda number: _parameter(number[1], parts), self.format)
        if self.pattern is not None and not self.pattern.fullmatch(base):
            return None
        if self.old is not None:
            base = self.old.sub(lambda found: expanded(self.new, found), base, count=0 if self.repeats else 1)
        return base.lower() if self.case == "L" else base.upper() if self.case == "U" else base


def _parameter(number: str, parts: Sequence[str]) -> str:
    if not number or int(number) >= len(parts):
        raise NoMatchingRule(f"${number} of a rule of {RULES_KEY} is not between 0 and {len(parts) - 1}")
    return parts[int(number)]


class ShortNames:
    """Names of users for Kerberos principals."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        """ConfigError names a rule that can't be read."""
        if len(rules) > _RULES_MAX:
            raise ConfigError(f"{RULES_KEY} has more than {_RULES_MAX} rules")
        self._rules = [_parse(rule) for rule in rules]
        self._default_realm = default_realm

    def name_of(self, principal: str) -> str:
        """ValueError for a malformed name, NoMatchingRule where no rule fits: the client is refused."""
        name = KerberosName.parse(principal)
        if name.realm is None:
            return name.service
        parts = [name.realm, name.service] if name.host is None else [name.realm, name.service, name.host]
        for rule in self._rules:
            short = self._default(parts) if rule is None else rule.apply(parts)
            if not short:
                continue
            if "/" in short or "@" in short:
                raise NoMatchingRule(f"a rule of {RULES_KEY} makes {short} of {principal}, which is not a simple name")
            return short
        raise NoMatchingRule(f"no rule of {RULES_KEY} applies to {principal}")

    def _default(self, parts: Sequence[str]) -> str | None:
        return parts[1] if parts[0] == self._default_realm else None


def _parse(text: str) -> _Rule | None:
    """Return None for DEFAULT."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"Invalid value {text} for configuration {RULES_KEY}: not a rule")
    if found[1]:
        return None
    try:
        pattern = None if found[4] is None else re.compile(found[4])
        old = None if found[5] is None else re.compile(found[5])
    except re.error as error:
        raise ConfigError(f"Invalid value {text} for configuration {RULES_KEY}: {error}") from None
    return _Rule(int(found[2]), found[3], pattern, old, found[6] or "", found[7] is not None, found[8] or "")
