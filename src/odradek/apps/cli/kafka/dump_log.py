"""kafka-dump-log: the content of a partition's files."""

from pathlib import Path

from odradek.apps.cli.dump_log import dump_as_text
from odradek.apps.cli.kafka.options import EVERY_TOOL, Given, Option, OptionTable, WrongOptions
from odradek.apps.cli.kafka.tool import ToolError
from odradek.apps.cli.log_files import DumpOptions
from odradek.base.errors import FatalError
from odradek.format.segment_files import LOG_SUFFIX

TABLE = OptionTable(
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment.",
    Option("files", "the files, with commas between", "FILE,…", separator=","),
    Option("print-data-log", "also keys and values; implies --deep-iteration"),
    Option("deep-iteration", "also the records of each batch"),
    Option("verify-index-only", "only check indexes, print nothing of them"),
    Option("index-sanity-check", "only check indexes, print nothing of them"),
    Option("max-message-size", "accepted, without effect", "BYTES"),
    Option("max-bytes", "bytes of a log to read, at most", "BYTES"),
    Option("skip-record-metadata", "with --print-data-log: only keys and values"),
    *EVERY_TOOL,
)


def run(given: Given) -> int:
    given.require("files")
    paths = [Path(name) for name in given.values("files") if name]
    for path in paths:
        if not path.is_file():
            raise ToolError(f"{path} does not exist")
    if given.has("skip-record-metadata") and not given.has("print-data-log"):
        raise WrongOptions('Option "[skip-record-metadata]" needs "[print-data-log]"')
    options = DumpOptions(
        with_records=bool(given.any_of("deep-iteration", "print-data-log")),
        with_data=given.has("print-data-log"),
        max_bytes=given.number("max-bytes"),
    )
    is_quiet = bool(given.any_of("verify-index-only", "index-sanity-check"))
    try:
        healthy = [dump_as_text(path, options, is_quiet=is_quiet and path.suffix != LOG_SUFFIX) for path in paths]
    except FatalError as error:
        raise ToolError(str(error)) from None
    return 0 if all(healthy) else 1
