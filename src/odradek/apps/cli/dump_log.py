"""`odradek dump-log`: shows the files of a partition's directory, and finds the damage in them."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.colour import styled
from odradek.apps.cli.grammar.declaration import Argument, Option
from odradek.apps.cli.grammar.noun import command
from odradek.apps.cli.log_files import DumpOptions, FileEntry, Problem, reader_for
from odradek.apps.cli.output import Format, bytes_as_text, note, print_rows
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import FatalError
from odradek.format.segment_files import INDEX_SUFFIX, LOG_SUFFIX

_BATCH_COLUMNS = (
    "position",
    "baseOffset",
    "lastOffset",
    "count",
    "producerId",
    "baseSequence",
    "partitionLeaderEpoch",
    "time",
    "size",
    "compresscodec",
    "isvalid",
)
_HORIZON = "deleteHorizonMs"


class DumpFormat(StrEnum):
    TEXT = "text"
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    WIDE = "wide"


@command(
    examples=[
        "odradek dump-log data/broker-0/logs/orders-0/00000000000000000000.log",
        "odradek dump-log --verify data/broker-0/logs/orders-0",
        "odradek dump-log --print-data-log --format json FILE.log",
    ]
)
def dump_log(
    files: Annotated[
        list[Path] | None,
        Argument(
            help="Files: .log, .index, .timeindex, .txnindex, .snapshot, leader-epoch-checkpoint; "
            "or a partition's directory, for all of them.",
            show_default=False,
        ),
    ] = None,
    file_list: Annotated[str, Option("--files", metavar="FILE,…", help="The same, separated by commas.")] = "",
    deep_iteration: Annotated[
        bool, Option("--deep-iteration", help="Show the records of each batch of a .log.")
    ] = False,
    print_data_log: Annotated[
        bool, Option("--print-data-log", help="Show keys, values and headers too; implies --deep-iteration.")
    ] = False,
    verify: Annotated[bool, Option("--verify", help="Print only problems and a summary.")] = False,
    max_bytes: Annotated[int | None, Option("--max-bytes", min=1, help="Bytes of a .log to read, at most.")] = None,
    output: Annotated[
        DumpFormat,
        Option(
            "--format, -o",
            help="kafka-dump-log's lines, a table, wide with every field, one JSON object per line, or CSV.",
        ),
    ] = DumpFormat.TEXT,
) -> None:
    """Show batches, index entries and checkpoints; exit code 1 if anything in them is broken.

    Nothing is written, so a running broker is not disturbed; its last batch may look truncated.
    """
    paths = _expand([*(files or []), *(Path(name) for name in file_list.split(",") if name)])
    options = DumpOptions(
        with_records=deep_iteration or print_data_log or verify, with_data=print_data_log, max_bytes=max_bytes
    )
    broken = [path for path in paths if not _dump(path, options, None if verify else output)]
    if broken:
        raise FatalError(f"{len(broken)} of {len(paths)} files are broken: {', '.join(str(path) for path in broken)}")
    if verify:
        print(f"{len(paths)} files, no problems found")


def dump_as_text(path: Path, options: DumpOptions, *, is_quiet: bool = False) -> bool:
    """Print the lines of Kafka's tool, which shows no values of headers, or only problems. True: no problem."""
    return _dump(path, options, None if is_quiet else DumpFormat.TEXT, hidden="headers")


def _expand(paths: list[Path]) -> list[Path]:
    if not paths:
        raise WrongUsage("name at least one file, or a partition's directory")
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = [child for child in sorted(path.iterdir()) if child.is_file() and _is_readable(child)]
            if not inside:
                raise FatalError(f"{path} has no log files; name a partition's directory, like DATA/orders-0")
            found.extend(inside)
        elif path.is_file():
            found.append(path)
        else:
            raise FatalError(f"{path} does not exist")
    return found


def _is_readable(path: Path) -> bool:
    try:
        reader_for(path)
    except FatalError:
        return False
    return True


def _dump(path: Path, options: DumpOptions, output: DumpFormat | None, *, hidden: str = "") -> bool:
    """Show one file, unless `output` is None, and problems on standard error. Return True if there were none."""
    reader = reader_for(path)
    entries: list[FileEntry] = []
    healthy = True
    if output is DumpFormat.TEXT:
        print(f"Dumping {path}")
        if path.suffix == LOG_SUFFIX and path.stem.isdecimal():
            print(f"Log starting offset: {int(path.stem)}")
        if path.suffix == INDEX_SUFFIX and not path.stat().st_size:
            print(f"{path} is empty.")
    for item in reader(path, options):
        match item:
            case Problem(position, what):
                healthy = False
                note(styled("problem: ", "red", sys.stderr) + f"{path} at byte {position}: {what}")
            case FileEntry() if output is DumpFormat.TEXT:
                _print_text(item, hidden)
            case FileEntry() if output is DumpFormat.JSON:
                print(json.dumps({"file": str(path), **_jsonable(item)}, ensure_ascii=False))
            case FileEntry() if output is not None:
                entries.append(item)
    if output in (DumpFormat.TABLE, DumpFormat.WIDE, DumpFormat.CSV):
        _print_rows(path, entries, Format(output.value))
    return healthy


def _print_text(entry: FileEntry, hidden: str) -> None:
    print(_line(entry.fields))
    for record in entry.records:
        print("| " + _line({name: value for name, value in record.items() if name != hidden}))


def _line(fields: dict[str, object]) -> str:
    return " ".join(
        f"{name}: {_horizon(value) if name == _HORIZON else _word(value)}" for name, value in fields.items()
    )


def _horizon(value: object) -> str:
    """Text of a number that may be absent, as Kafka prints it."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _word(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case bytes():
            return bytes_as_text(value) or ""
        case {"key": key, "value": header_value}:
            return f"{key}={_word(header_value)}"
        case list():
            return "[" + ",".join(_word(item) for item in value) + "]"
        case _:
            return str(value)


def _jsonable(entry: FileEntry) -> dict[str, object]:
    if not entry.records:
        return dict(entry.fields)
    return {**entry.fields, "records": [_json_value(record) for record in entry.records]}


def _json_value(value: object) -> object:
    match value:
        case bytes():
            return bytes_as_text(value)
        case list():
            return [_json_value(item) for item in value]
        case dict():
            return {name: _json_value(item) for name, item in value.items()}
        case _:
            return value


def _print_rows(path: Path, entries: list[FileEntry], output: Format) -> None:
    rows = [_with_time(entry.fields) for entry in entries]
    everything = list(dict.fromkeys(name for row in rows for name in row))
    columns = list(_BATCH_COLUMNS) if output.is_table and path.suffix == LOG_SUFFIX else everything
    print_rows(rows, columns, output, title=str(path), empty=f"{path} is empty")


def _with_time(fields: dict[str, object]) -> dict[str, object]:
    """Merge the timestamp fields into one column of either type; the other formats keep Kafka's names."""
    time = fields.get("CreateTime", fields.get("LogAppendTime"))
    return fields if time is None else {**fields, "time": time}
