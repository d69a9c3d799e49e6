"""Names of Kerberos principals, judged by Kafka's own examples of rules."""

import pytest

from odradek.base.errors import ConfigError
from odradek.security.distinguished_names import NoMatchingRule
from odradek.security.kerberos_names import KerberosName, ShortNames

REALM = "REALM.COM"
RULES = (
    r"RULE:[1:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[2:$1](App\..*)s/App\.(.*)/$1/g",
    r"RULE:[1:$1@$0](.*@OTHER.COM)s/@.*//",
    "RULE:[2:$1;$2](backup;.*)s/.*/saved/U",
    "DEFAULT",
)


@pytest.mark.parametrize(
    ("principal", "name"),
    [
        ("App.service-name/example.com@REALM.COM", "service-name"),
        ("App.service-name@REALM.COM", "service-name"),
        ("user/host@REALM.COM", "user"),
        ("alice@REALM.COM", "alice"),
        ("bob@OTHER.COM", "bob"),
        ("backup/host@REALM.COM", "SAVED"),
        ("local", "local"),
    ],
)
def test_short_names(principal: str, name: str) -> None:
    assert ShortNames(RULES, REALM).name_of(principal) == name


def test_the_case_of_a_name() -> None:
    assert ShortNames(["RULE:[1:$1]/L"], REALM).name_of("Alice@REALM.COM") == "alice"
    assert ShortNames(["RULE:[1:$1]/U"], REALM).name_of("Alice@REALM.COM") == "ALICE"
    assert ShortNames(["RULE:[1:$1]s/a/b/g/U"], REALM).name_of("aXa@REALM.COM") == "BXB"


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        (["DEFAULT"], "alice@OTHER.COM"),
        (["RULE:[2:$1]"], "alice@REALM.COM"),
        (["RULE:[1:$1@$0]"], "alice@REALM.COM"),
        (["RULE:[1:$2]"], "alice@REALM.COM"),
        (["RULE:[1:$1](bob)"], "alice@REALM.COM"),
        ([], "alice@REALM.COM"),
        (["RULE:[1:$1]s/.*//"], "alice@REALM.COM"),
    ],
)
def test_names_that_no_rule_makes_simple_are_refused(rules: list[str], principal: str) -> None:
    with pytest.raises(NoMatchingRule):
        ShortNames(rules, REALM).name_of(principal)


@pytest.mark.parametrize("text", ["a/b/c@R", "a@b@c", r"a\/b@R", r"admin\@R@R", "", "a/b", "x" * 2000 + "@R"])
def test_malformed_names(text: str) -> None:
    with pytest.raises(ValueError, match="malformed"):
        KerberosName.parse(text)


@pytest.mark.parametrize(
    "rule", ["default", "DEFAULT x", "RULE:[1:$1", "RULE:[:$1]", "RULE:[1:$1](*)", "RULE:[1:$1]s/(/x/", "RULE:[1:$1]/X"]
)
def test_rules_that_can_not_be_read(rule: str) -> None:
    with pytest.raises(ConfigError, match=r"principal\.to\.local\.rules"):
        ShortNames([rule], REALM)
