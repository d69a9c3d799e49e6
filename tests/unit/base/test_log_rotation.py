"""A log file with a bound: the process that writes it moves to a new one."""

import subprocess
import sys
from pathlib import Path

from odradek.base.log_rotation import LOG_FILE_VARIABLE, RotatedOutput

WRITER = """
import sys
from pathlib import Path
from odradek.base import logs
from odradek.base.log_rotation import RotatedOutput

logs.configure(rotation=RotatedOutput(Path(sys.argv[1]), bytes_max=1000, files_max=3))
log = logs.get_logger("writer")
for number in range(100):
    log.info("event", number=number)
print("last words", file=sys.stderr)
"""


def test_the_newest_lines_stay_in_bounded_files(tmp_path: Path) -> None:
    file = tmp_path / "broker.log"
    with file.open("ab") as output:
        command = [sys.executable, "-c", WRITER, str(file)]
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=True, timeout=60)
    files = [tmp_path / "broker.log.2", tmp_path / "broker.log.1", file]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(part.stat().st_size < 1200 for part in files)
    lines = [line for part in files for line in part.read_text().splitlines()]
    assert lines[-1] == "last words"
    numbers = [int(line.rpartition("=")[2]) for line in lines[:-1]]
    assert numbers == list(range(numbers[0], 100))


def test_only_the_file_behind_standard_output_is_rotated(tmp_path: Path) -> None:
    other = tmp_path / "other.log"
    other.touch()
    assert RotatedOutput.from_environment({}) is None
    assert RotatedOutput.from_environment({LOG_FILE_VARIABLE: str(other)}) is None
    assert RotatedOutput.from_environment({LOG_FILE_VARIABLE: str(tmp_path / "absent")}) is None
