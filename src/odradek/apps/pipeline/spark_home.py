"""Home of Spark, and the archive of its classes, which a JVM maps parsed and verified in place of loading them.

The archive (class data sharing of Java) is of one Java and of jars at one path. So all projects of a user share a home,
in `$XDG_CACHE_HOME/odradek/spark-KEY` (`~/.cache/…`); the key changes with Java and with the jars. A lasting run
without an archive records the classes that it loads, and its JVM writes the file when it ends: about 200 MB. Of several
archives the two that were used last are kept. `ODRADEK_SPARK_CLASS_ARCHIVE=off` turns all of this off.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from odradek.local.java import find_java
from odradek.local.process_start import process_start

SWITCH = "ODRADEK_SPARK_CLASS_ARCHIVE"
_CLASS_PATH_VARIABLES = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
_CLASS_PATH_SETTING = "spark.driver.extraClassPath"
_ARCHIVE_OF_JAVA = "lib/server/classes.jsa"  # without it, a JVM records nothing
_ARCHIVE, _RECORDING = "classes.jsa", "recording-"
_KEPT = 2
# A JVM reports each class that can't be archived, and an archive that doesn't fit, on standard output.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def wheel() -> Path:
    """Directory of PySpark as it is installed."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def unzipped_spark_home(work: Path) -> Path:
    """Spark as the wheel has it, but for the zip of Python sources that it puts before everything else.

    Python compiles a zip's modules anew in every worker, 1.0 s of CPU; from site-packages the same takes 0.4 s. Spark
    gives a worker ten seconds to start, which may be too short on a busy machine.
    """
    home = work / "spark"
    home.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars", "sbin"):
        link, linked = home / name, wheel() / name
        if not link.is_symlink() or link.readlink() != linked:
            link.unlink(missing_ok=True)
            with suppress(FileExistsError):  # another process makes the same link
                link.symlink_to(linked)
    return home


@dataclass(frozen=True, slots=True)
class SharedHome:
    """Directory of the user's cache for one Java and one set of jars."""

    directory: Path

    @property
    def home(self) -> Path:
        return unzipped_spark_home(self.directory)

    @property
    def has_archive(self) -> bool:
        return self._archive.exists()

    @property
    def _archive(self) -> Path:
        return self.directory / _ARCHIVE

    @property
    def _recording(self) -> Path:
        return self.directory / f"{_RECORDING}{os.getpid()}"

    def java_options(self, *, may_record: bool) -> str:
        """Options of a JVM that maps the archive, or records one."""
        with suppress(FileNotFoundError):
            os.utime(self._archive)  # the time of its last use
            return f"-XX:SharedArchiveFile={self._archive} {_QUIET}"
        return f"-XX:ArchiveClassesAtExit={self._recording} {_QUIET}" if may_record else ""

    def end_recording(self, *, keep: bool) -> bool:
        """Use what the JVM of this process has recorded from now on; False if it has written nothing."""
        try:
            if not keep:
                self._recording.unlink(missing_ok=True)
                return False
            self._recording.rename(self._archive)
        except FileNotFoundError:
            return False
        self._remove_others()
        return True

    def _remove_others(self) -> None:
        """Remove archives that others have replaced, and recordings of JVMs that were killed."""
        places = self.directory.parent.glob("spark-*")
        for recording in self.directory.parent.glob(f"spark-*/{_RECORDING}*"):
            if process_start(int(recording.name.removeprefix(_RECORDING))) is None:
                recording.unlink(missing_ok=True)
        used = sorted(_with_times(place / _ARCHIVE for place in places), reverse=True)
        for _, archive in used[_KEPT:]:
            archive.unlink(missing_ok=True)


def shared_home(settings: Mapping[str, str]) -> SharedHome | None:
    """Return the user's home of Spark; None if it is turned off, can't be written, or Spark has other class paths."""
    if _CLASS_PATH_SETTING in settings or any(name in os.environ for name in _CLASS_PATH_VARIABLES):
        return None
    java = find_java().resolve()
    if os.environ.get(SWITCH) == "off" or not (java.parent.parent / _ARCHIVE_OF_JAVA).exists():
        return None
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        place = SharedHome(cache / "odradek" / f"spark-{_key(java)}")
        place.directory.mkdir(parents=True, exist_ok=True)
        return place if os.access(place.home, os.W_OK) else None
    except (OSError, RuntimeError):  # a user without a home
        return None


def _key(java: Path) -> str:
    jars = wheel() / "jars"
    found = [java, java.parent.parent / "release", jars, *sorted(jars.glob("*.jar"))]
    told = "\n".join(f"{path} {size} {modified}" for path in found for modified, size in _facts(path))
    return hashlib.sha256(told.encode()).hexdigest()[:12]


def _facts(path: Path) -> Iterator[tuple[int, int]]:
    with suppress(FileNotFoundError):
        found = path.stat()
        yield found.st_mtime_ns, found.st_size


def _with_times(archives: Iterator[Path]) -> Iterator[tuple[int, Path]]:
    for archive in archives:
        for modified, _ in _facts(archive):
            yield modified, archive
