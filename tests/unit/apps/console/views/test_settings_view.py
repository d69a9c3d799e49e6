"""Settings with units, searched, with what they are without an override."""

import pytest

pytest.importorskip("markupsafe", reason="the console needs odradek[console]")

from odradek.apps.console.views.settings import default_of, matching, settings_html, shown_default, with_unit
from odradek.base.config.definition import ConfigSource
from odradek.client.config_admin import Setting, Synonym

OWN = ConfigSource.DYNAMIC_TOPIC_CONFIG
RETENTION = Setting(
    "retention.ms", "60000", OWN, False, False, (Synonym(ConfigSource.DEFAULT_CONFIG, "log.retention.ms", "604800000"),)
)
POLICY = Setting("cleanup.policy", "delete", ConfigSource.DEFAULT_CONFIG, False, False, ())


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("retention.ms", "604800000", "7 d"),
        ("retention.bytes", "-1", "no limit"),
        ("segment.bytes", "1073741824", "1 GB"),
        ("log.retention.hours", "168", "7 d"),
        ("cleanup.policy", "delete", ""),
        ("min.insync.replicas", "2", ""),
        ("flush.ms", "9223372036854775807", "no limit"),
    ],
)
def test_numbers_are_told_with_their_unit(name: str, value: str, unit: str) -> None:
    assert with_unit(name, value).replace(".0", "") == unit


def test_a_search_finds_also_what_is_not_set() -> None:
    settings = [RETENTION, POLICY]
    assert matching(settings, OWN, "", only_own=True) == [RETENTION]
    assert matching(settings, OWN, "", only_own=False) == settings
    assert matching(settings, OWN, "clean pol", only_own=True) == [POLICY]
    assert (default_of(RETENTION, OWN), default_of(POLICY, OWN)) == ("604800000", "delete")


def test_the_default_of_a_brokers_setting_is_the_built_in_one() -> None:
    static, built_in = ConfigSource.STATIC_BROKER_CONFIG, ConfigSource.DEFAULT_CONFIG
    own = ConfigSource.DYNAMIC_BROKER_CONFIG
    synonyms = (Synonym(static, "num.io.threads", "4"), Synonym(built_in, "num.io.threads", "8"))
    assert shown_default(Setting("num.io.threads", "4", static, False, False, synonyms), own) == "8"
    assert shown_default(Setting("broker.id", "3", static, False, False, synonyms[:1]), own) is None
    assert shown_default(Setting("num.io.threads", "8", built_in, False, False, synonyms[1:]), own) == "8"
    assert shown_default(RETENTION, OWN) == "604800000"


def test_documentation_and_the_default_are_beside_the_value() -> None:
    shown = settings_html([RETENTION], OWN, {"retention.ms": "How long records stay."}, read_only=False, empty="")
    assert "How long records stay." in shown
    assert "7 d" in shown
    assert "Change" in shown
    assert "Change" not in settings_html([RETENTION], OWN, {}, read_only=True, empty="")
