"""Home of Spark in the user's cache, and the archive of classes in it; no JVM runs."""

import os
import subprocess
from pathlib import Path

import pytest

from odradek.apps.pipeline.spark_home import SWITCH, SharedHome, shared_home


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of a user whose Java has the archive that others build on."""
    java = tmp_path / "java"
    for file in ("bin/java", "lib/server/classes.jsa", "release"):
        (java / file).parent.mkdir(parents=True, exist_ok=True)
        (java / file).touch()
    (java / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(java))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", SWITCH):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache" / "odradek"


def recorded(home: SharedHome) -> SharedHome:
    """The home after a run whose JVM has written an archive."""
    option = home.java_options(may_record=True).split()[0]
    Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"classes")
    assert home.end_recording(keep=True)
    return home


def found_home() -> SharedHome:
    home = shared_home({})
    assert home is not None
    return home


def test_the_home_has_the_jars_of_the_wheel(cache: Path) -> None:
    home = found_home()
    assert home.directory.parent == cache
    assert list((home.home / "jars").glob("spark-core_*.jar"))


def test_a_recorded_archive_is_used_by_the_next_start(cache: Path) -> None:
    home = found_home()
    assert home.java_options(may_record=False) == ""
    recorded(home)
    option, *_ = found_home().java_options(may_record=True).split()
    assert option == f"-XX:SharedArchiveFile={home.directory / 'classes.jsa'}"


def test_another_java_has_another_archive(cache: Path) -> None:
    recorded(found_home())
    (Path(os.environ["JAVA_HOME"]) / "release").write_text("a later one")
    assert not found_home().has_archive


def test_a_jvm_that_wrote_nothing_or_was_killed_leaves_no_archive(cache: Path) -> None:
    home = found_home()
    assert not home.end_recording(keep=True)
    option = home.java_options(may_record=True).split()[0]
    Path(option.removeprefix("-XX:ArchiveClassesAtExit=")).write_bytes(b"half")
    assert not home.end_recording(keep=False)
    assert [path.name for path in home.directory.iterdir()] == ["spark"]


def test_two_archives_are_kept_and_what_killed_jvms_left_is_removed(cache: Path) -> None:
    release = Path(os.environ["JAVA_HOME"]) / "release"
    ended = subprocess.Popen(["true"])
    ended.wait()
    homes = []
    for number in range(3):
        release.write_text("x" * number)
        home = found_home()
        (home.directory / f"recording-{ended.pid}").touch()
        homes.append(recorded(home))
        os.utime(home.directory / "classes.jsa", (number, number))
    assert [home.has_archive for home in homes] == [False, True, True]
    assert not list(cache.glob("*/recording-*"))


@pytest.mark.parametrize("variable", ["SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH"])
def test_a_spark_with_another_class_path_has_none(cache: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "/somewhere")
    assert shared_home({}) is None
    monkeypatch.delenv(variable)
    assert shared_home({"spark.driver.extraClassPath": "more.jar"}) is None


def test_it_can_be_turned_off(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert shared_home({}) is None
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text("a file in the way")
    assert shared_home({}) is None


def test_a_user_without_a_home_has_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert shared_home({}) is None


def test_a_java_without_an_archive_of_its_own_records_nothing(cache: Path) -> None:
    (Path(os.environ["JAVA_HOME"]) / "lib" / "server" / "classes.jsa").unlink()
    assert shared_home({}) is None
