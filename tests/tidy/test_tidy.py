"""Rules of the source that a reader relies on, kept by a machine."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.base.config.definition import ConfigType
from odradek.base.config.keys import STATIC_KEYS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "odradek"
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

LARGER_FILES: dict[str, int] = {}
# The inner loop over the fields of a record: a call per field would cost more than the field.
LARGER_FUNCTIONS = {
    "protocol/record_walk.py:_walk_fields": 70,
}
HEADLESS_MAX = 0.01
"""Share of docstrings without a noun or a verb as their subject; it may fall only."""

HEADLESS_START = re.compile(
    r"(what|whatever|who|whoever|whom|whose|nobody|everybody|everyone|somebody|anybody|those|these|this|that|it|they"
    r"|where|wherever|whether|when|how|why|which|none|all that|everything|nothing|something|anything"
    r"|one (that|which|who)|ones|as|by|until|told|with|without|of|from|for|to|in|at|on|only|not|never|so)\b",
    re.IGNORECASE,
)
HEADLESS_INSIDE = re.compile(
    r"\b(what is|what was|what are|whoever|nobody|everybody|those that|those who|whatever)\b", re.IGNORECASE
)
# `import` name → distribution name where they differ.
DISTRIBUTIONS = {"confluent_kafka": "confluent-kafka", "google": "protobuf", "delta": "deltalake", "re2": "google-re2"}
EXTERNAL_OF_SPARK = frozenset({"py4j", "numpy", "delta"})
"""Come with pyspark and pyarrow, which say which versions of them work."""


@cache
def sources() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if "template" not in path.parts]


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCE))


class Contents(NamedTuple):
    docstring: str | None
    docstrings: list[str]
    """All that there are in the file."""
    functions: list[tuple[str, int]]
    """Name and number of lines."""
    imported: set[str]
    """Packages from elsewhere, and our own: the first part of their names."""
    classes: list[tuple[str, list[str]]]
    """Name and bases."""
    called: set[str]
    """Names that are called, and so the classes that are made."""
    modules: set[str]
    """Modules, or names in them, that are imported: full names."""
    threads: list[tuple[int, bool]]
    """Threads, timers and executors that it makes: the line, and whether they get a name."""


@cache
def contents(path: Path) -> Contents:
    """Facts about a file that the rules need, from one walk through it: the walk takes the time."""
    tree = ast.parse(path.read_text())
    found = Contents(ast.get_docstring(tree), [], [], set(), [], set(), set(), [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
            elif isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                found.classes.append((node.name, bases))
            if text := ast.get_docstring(node):
                found.docstrings.append(text)
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if isinstance(node.func, ast.Name):
                found.called.add(name)
            if name in ("Thread", "Timer", "ThreadPoolExecutor"):
                keywords = {keyword.arg for keyword in node.keywords}
                is_named = bool(keywords & {"name", "thread_name_prefix"}) or len(node.args) > 1
                found.threads.append((node.lineno, is_named))
        elif isinstance(node, ast.Import):
            found.imported.update(alias.name.split(".")[0] for alias in node.names)
            found.modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.imported.add(node.module.split(".")[0])
            found.modules.add(node.module)
            found.modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_files_have_one_purpose() -> None:
    sizes = {name_of(path): len(path.read_text().splitlines()) for path in sources()}
    too_large = {name: size for name, size in sizes.items() if size > LARGER_FILES.get(name, FILE_LINES_MAX)}
    assert too_large == {}
    assert {name for name in LARGER_FILES if sizes.get(name, 0) <= FILE_LINES_MAX} == set(), "no longer larger"


def test_functions_fit_on_a_screen() -> None:
    sizes = {f"{name_of(path)}:{name}": lines for path in sources() for name, lines in contents(path).functions}
    too_large = {name: size for name, size in sizes.items() if size > LARGER_FUNCTIONS.get(name, FUNCTION_LINES_MAX)}
    assert too_large == {}
    assert {name for name in LARGER_FUNCTIONS if sizes.get(name, 0) <= FUNCTION_LINES_MAX} == set(), "no longer larger"


def test_every_module_says_what_it_is() -> None:
    assert [name_of(path) for path in sources() if path.stat().st_size and not contents(path).docstring] == []


def is_headless(text: str) -> bool:
    """Judge the first sentence: it begins with a clause in place of a noun or a verb, or leans on one."""
    first = re.match(r".*?[.!?](?=\s|$)|.*", text.split("\n\n")[0], re.DOTALL)
    return bool(HEADLESS_START.match(text) or HEADLESS_INSIDE.search(first[0] if first else ""))


def test_docstrings_have_a_subject() -> None:
    found = [(name_of(path), text) for path in sources() for text in contents(path).docstrings]
    headless = [(name, text.split("\n")[0]) for name, text in found if is_headless(text)]
    assert len(headless) <= HEADLESS_MAX * len(found), headless


def test_every_package_says_what_it_owns() -> None:
    packages = {path.parent for path in sources()}
    assert [str(package) for package in sorted(packages) if not contents(package / "__init__.py").docstring] == []


def test_kazoo_is_imported_by_its_packages_only() -> None:
    allowed = (
        "broker/zk/",
        "apps/legacy/",
        "apps/lab/",
        "apps/console/readings/coordination.py",
        "apps/cli/audit_assignment.py",
    )
    users = {name_of(path) for path in sources() if "kazoo" in contents(path).imported}
    assert {name for name in users if not name.startswith(allowed)} == set()


def test_dataclasses_of_a_broker_are_built_on_first_use() -> None:
    """The standard `dataclass` compiles the methods of frozen, slotted classes at import, two hundred times."""
    packages = ("base/", "broker/", "client/", "format/", "local/", "model/", "protocol/", "security/")
    standard = re.compile(r"^from dataclasses import .*\bdataclass\b", re.MULTILINE)
    users = {name_of(path): path.read_text() for path in sources() if name_of(path).startswith(packages)}
    early = {name for name, text in users.items() if standard.search(text) and "frozen=True, slots=True" in text}
    assert early == set(), "import dataclass from odradek.base.value_classes"


def test_time_enters_by_its_door() -> None:
    """Engines get `base/clock.py`; the reactor, the ZooKeeper session and requests read the system's clock."""
    allowed = (
        "base/clock.py",
        "base/logs.py",
        "broker/network/",
        "broker/zk/",
        "broker/api/context.py",
        "broker/api/dispatcher.py",
        "broker/api/throttling.py",
        "broker/controller/effect_runner.py",
    )
    of_the_broker = [
        path for path in sources() if name_of(path).startswith(("base/", "model/", "protocol/", "broker/"))
    ]
    users = {name_of(path) for path in of_the_broker if "time" in contents(path).imported}
    assert {name for name in users if not name.startswith(allowed)} == set()


def test_threads_of_the_broker_are_supervised() -> None:
    """`base/threads.py` starts them, so that none ends unnoticed. The others are timers that end the process or a slow
    scrape, and the recovery of logs, whose results are read where it starts."""
    others = {"broker/main.py", "base/metrics_endpoint.py", "broker/log/directories/log_dirs.py"}
    of_the_broker = [path for path in sources() if name_of(path).startswith(("base/", "broker/"))]
    users = {name_of(path) for path in of_the_broker if contents(path).threads}
    assert users - others - {"base/threads.py"} == set()


def test_threads_have_names() -> None:
    """`threading.Timer` takes none: it gets one by assignment."""
    found = {name_of(path): contents(path).threads for path in sources()}
    unnamed = {name for name, calls in found.items() for _, is_named in calls if not is_named}
    timers = {"broker/main.py": 'halt.name = "', "base/metrics_endpoint.py": 'timer.name = "'}
    assert {name for name in unnamed if timers.get(name, "?") not in (SOURCE / name).read_text()} == set()


def test_brokers_are_reached_by_one_client() -> None:
    """`client/connection.py` opens connections to brokers. The others speak to ZooKeeper, to Spark or to a bare
    echo, pass bytes on, look at a certificate, or measure the connecting itself."""
    allowed = {
        "apps/console/readings/security.py",
        "apps/lab/bench/floor.py",
        "apps/lab/bench/login_client.py",
        "apps/lab/line.py",
        "apps/pipeline/session.py",
        "broker/zk/handler.py",
        "client/connection.py",
        "local/zookeeper_server.py",
    }
    users = {name_of(path) for path in sources() if "create_connection(" in path.read_text()}
    assert users - allowed == set()


def test_requests_of_the_tools_are_made_by_one_client() -> None:
    """`client/` makes them, and `broker/` its own. The laboratory measures some as they are on the wire."""
    made = re.compile(r"\b((?:Create|Delete|Describe|Alter|Elect|List|Incremental|Expire|Renew)\w+Request)\(")
    packages = ("client/", "broker/", "protocol/", "local/coordination/", "sim/", "apps/lab/bench/")
    others = [path for path in sources() if not name_of(path).startswith(packages)]
    assert {name_of(path): made.findall(path.read_text()) for path in others if made.search(path.read_text())} == {}


def test_command_lines_have_one_grammar() -> None:
    parsers = {"argparse", "optparse", "getopt", "click", "typer"}
    assert [name_of(path) for path in sources() if parsers & contents(path).imported] == []


def test_server_processes_are_started_by_one_class() -> None:
    """`local/owned_process.py` starts brokers and ZooKeeper. The others start Spark, a pipeline, an experiment, an
    echo or clients."""
    allowed = {
        "apps/console/experiment.py",
        "apps/console/pipeline_control.py",
        "apps/demo/stage.py",
        "apps/lab/bench/floor.py",
        "apps/lab/bench/security_figures.py",
        "apps/lab/pipeline_speed/comparison.py",
        "apps/lab/spark_read/sessions.py",
        "apps/pipeline/spark_jvm.py",
        "local/owned_process.py",
    }
    assert {name_of(path) for path in sources() if "Popen(" in path.read_text()} - allowed == set()


def test_settings_are_read_by_their_fields() -> None:
    """`BrokerConfig` has a typed field for each setting that the broker reads; passwords and lists are read by name."""
    by_name = re.compile(r"(?:config|live\.current)\.(?:get|integer)\(\"([a-z.]+)\"\)")
    read = {
        (name_of(path), name)
        for path in sources()
        if name_of(path).startswith("broker/")
        for name in by_name.findall(path.read_text())
    }
    untyped = (ConfigType.PASSWORD, ConfigType.LIST)
    assert {(path, name) for path, name in read if STATIC_KEYS[name].type not in untyped} == set()


# A node of the timing wheel's lists, which the wheel knows as such; the stand-in for an interface that older versions
# of Spark lack.
BASES_OF_ONE = {"TimerEntry", "SupportsTriggerAvailableNow"}


def test_no_object_is_cut_into_files_by_inheritance() -> None:
    """A class with one subclass, in another file of its package, that nothing makes by itself, is part of the other."""
    defined = {name: path for path in sources() for name, _ in contents(path).classes if not name.startswith("_")}
    made = {name for path in sources() for name in contents(path).called}
    subclasses: dict[str, list[Path]] = {}
    for path in sources():
        for _, bases in contents(path).classes:
            for base in bases:
                subclasses.setdefault(base, []).append(path)
    cut = {
        base
        for base, paths in subclasses.items()
        if base in defined and base not in made and len(paths) == 1
        if paths[0] != defined[base] and paths[0].parent == defined[base].parent
    }
    assert cut - BASES_OF_ONE == set()


def part_of(name: str) -> str:
    """An application, Kafka's own tools, or a package at the top."""
    match name.split("/"):
        case ["apps", "cli", "kafka", *_]:
            return "apps/cli/kafka"
        case ["apps", application, *_]:
            return f"apps/{application}"
        case [top, *_]:
            return top
        case _:
            return ""


def test_classes_of_a_part_have_names_of_their_own() -> None:
    """Messages use Kafka's names for their parts; a znode's class is named like the node, and used with its module."""
    named_elsewhere = ("protocol/messages/", "broker/zk/znodes/")
    found: dict[tuple[str, str], set[str]] = {}
    for path in sources():
        if not name_of(path).startswith(named_elsewhere):
            for name, _ in contents(path).classes:
                if not name.startswith("_"):
                    found.setdefault((part_of(name_of(path)), name), set()).add(name_of(path))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def contracts() -> list[dict[str, list[str]]]:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return list(tools["importlinter"]["contracts"])


IMPURE = {
    *("asyncio", "atexit", "concurrent", "fcntl", "http", "io", "kazoo", "logging", "mmap", "os", "pathlib", "queue"),
    *("random", "secrets", "select", "selectors", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile"),
    *("threading", "time", "urllib"),
}
# A topic id is drawn by chance; the package of the handlers loads them.
NOT_PURE = {"odradek.broker.controller.topic_ids", "odradek.broker.api.handlers"}


def test_pure_modules_of_the_broker_are_in_the_contract() -> None:
    """A module that imports nothing impure, at any distance, is guarded against it: it lies in a pure package, or the
    contract names it."""
    (named,) = (each["source_modules"] for each in contracts() if "pure packages" in each["name"])
    guarded = "|".join(re.escape(name).replace(r"\*", "[^.]+") + r"(\..+)?" for name in named)
    modules = {}
    for path in sources():
        name = ".".join(("odradek", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        modules[name] = contents(path)
    impure = {name for name, found in modules.items() if found.imported & IMPURE or "open" in found.called}
    while grown := {name for name in modules.keys() - impure if modules[name].modules & impure}:
        impure |= grown
    pure = {name for name in modules.keys() - impure if name.startswith("odradek.broker.")}
    own = {name for name in pure if modules[name].classes or modules[name].functions}
    assert {name for name in own if not re.fullmatch(guarded, name)} - NOT_PURE == set()


def test_packages_named_core_are_in_the_contract() -> None:
    (named,) = (each["source_modules"] for each in contracts() if "pure packages" in each["name"])
    guarded = "|".join(re.escape(name).replace(r"\*", "[^.]+") for name in named)
    cores = [path for path in SOURCE.rglob("core") if (path / "__init__.py").exists()]
    packages = {".".join(("odradek", *path.relative_to(SOURCE).parts)) for path in cores}
    assert {name for name in packages if not re.fullmatch(guarded, name)} == set()
    assert {name_of(path) for path in sources() if "core" in path.parts and "open" in contents(path).called} == set()


def test_nothing_is_named_for_leftovers() -> None:
    """ARCHITECTURE.md: "deliberately absent"."""
    names = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert {name_of(path) for path in sources() if names & {path.stem, *path.relative_to(SOURCE).parts}} == set()


def test_the_broker_has_no_asyncio() -> None:
    parts = ("base/", "broker/", "client/", "protocol/")
    users = {name_of(path) for path in sources() if "asyncio" in contents(path).imported}
    assert {name for name in users if name.startswith(parts)} == set()


def test_dependencies_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {re.split(r"[\[<>=~! ;]", line)[0].lower() for lines in lists for line in lines}
    used = {name for path in sources() for name in contents(path).imported}
    foreign = used - sys.stdlib_module_names - {"odradek"} - EXTERNAL_OF_SPARK
    undeclared = {name for name in foreign if DISTRIBUTIONS.get(name, name).lower() not in declared}
    assert undeclared == set()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the tool needs 3.11")
def test_the_map_is_what_the_code_says() -> None:
    spec = spec_from_file_location("map_of_packages", ROOT / "tools" / "map.py")
    assert spec is not None
    assert spec.loader is not None
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.is_drawn(), "ARCHITECTURE.md: the map is older than the code; run `make map`"


def test_the_index_of_the_architecture_names_files_that_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:base|model|protocol|format|broker|client|local|apps)/[\w/]+\.py)`", page))
    assert named
    assert {name for name in named if not (SOURCE / name).is_file()} == set()
    rows = re.findall(r"^\| ([^|]*\?) \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) >= 10
    assert [question for question, answer in rows if not 1 <= answer.count(".py`") <= 2] == [], "two files at most"


def test_the_architecture_names_the_layers_in_the_order_of_the_contracts() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    (order,) = re.findall(r"packages below it, in this order: (.*?)Every\s+package named `core`", page, re.DOTALL)
    named = re.findall(r"`([a-z]+)`|Inside of `[a-z]+/`", order)
    layers = [each for each in contracts() if "layers" in each]
    in_order = [name for each in layers for layer in each["layers"] for name in layer.split(" | ")]
    packages = {path.name for path in SOURCE.rglob("*") if (path / "__init__.py").exists()}
    assert [name for name in named if name in packages] == [name for name in in_order if name in packages]


def test_the_architecture_names_the_threads_that_a_broker_can_lose() -> None:
    """The flight recorder and the metrics endpoint, and two that end after one task."""
    losable = {name_of(path) for path in sources() if "is_essential=False" in path.read_text()}
    assert losable == {
        "base/metrics_endpoint.py",
        "broker/directory_failures.py",
        "broker/network/server.py",
        "broker/recorder/recorder.py",
    }


def test_unit_tests_follow_the_source() -> None:
    """A folder of unit tests is named like the package that they test."""
    folders = {file.parent.relative_to(ROOT / "tests" / "unit") for file in (ROOT / "tests/unit").rglob("test_*.py")}
    assert {str(folder) for folder in folders if not (SOURCE / folder).is_dir()} == set()


def test_unit_tests_lie_beside_their_modules() -> None:
    """A test that is named like a module below its folder lies in the folder of that module."""
    misplaced = set()
    for test in (ROOT / "tests/unit").rglob("test_*.py"):
        folder, name = SOURCE / test.parent.relative_to(ROOT / "tests" / "unit"), test.name.removeprefix("test_")
        if not (folder / name).exists() and not (folder / name.removesuffix(".py")).is_dir():
            misplaced |= {name_of(test_of) for test_of in folder.rglob(name)}
    assert misplaced == set()


def test_files_outside_of_packages_have_names_of_their_own() -> None:
    """pytest imports them as modules without a package: of two with one name it can't collect the second."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if not (file.parent / "__init__.py").exists()]
    names = [file.name for file in files if "kafka" not in file.parts]
    assert sorted({name for name in names if names.count(name) > 1} - {"conftest.py"}) == []
