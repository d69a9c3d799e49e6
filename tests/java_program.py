"""Java programs: what is compiled for tests, and a program of others that runs beside a test and prints to files."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from odradek.local.java import find_java

_STOP_S_MAX: Final = 120
_COMPILE_S_MAX: Final = 120
_COMPILED: Final = Path(__file__).parent.parent / ".tools" / "compiled"
SHORT_LIVED: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options of a JVM that lives for a test: what the second compiler and a collector with threads of its own would gain
in an hour costs half of its processor time in the first minute."""
_LOG4J: Final = """\
log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.target=System.err
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
"""


def temporary_files(directory: Path) -> str:
    """A JVM that is killed leaves its copies of native compressors; they go with the directory of the test."""
    return f"-Djava.io.tmpdir={directory}"


def compiled(source: Path, jars: Path) -> Path:
    """The directory of the program's classes, compiled once for all workers and runs."""
    key = hashlib.sha256(f"{jars} {find_java().resolve()}\n{source.read_text()}".encode()).hexdigest()[:12]
    directory = _COMPILED / f"{source.stem}-{key}"
    if not directory.exists():
        arriving = directory.with_suffix(f".{os.getpid()}")
        command = ["javac", "-cp", f"{jars}/*", "-d", str(arriving), str(source)]
        subprocess.run(command, check=True, timeout=_COMPILE_S_MAX)
        try:
            arriving.rename(directory)
        except OSError:  # another worker was faster
            shutil.rmtree(arriving)
    return directory


@contextmanager
def java(class_path: str, printed: Path, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """A JVM that runs while this is entered, and prints to that file; complaints go to one beside it."""
    log4j = printed.with_suffix(".log4j")
    log4j.write_text(_LOG4J)
    options = ["-Xmx256m", *SHORT_LIVED, temporary_files(printed.parent), f"-Dlog4j.configuration=file:{log4j}"]
    command = [str(find_java()), *options, "-cp", class_path]
    with printed.open("wb") as output, printed.with_suffix(".errors").open("wb") as errors:
        process = subprocess.Popen([*command, *map(str, arguments)], stdout=output, stderr=errors)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S_MAX)
            finally:
                process.kill()
