"""Clients in other languages: fetched once into `.tools`, by their own package managers."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from obtaining import Unobtainable

_HERE = Path(__file__).parent
_TOOLS = Path(os.environ.get("ODRADEK_TOOLS") or _HERE.parent / ".tools")
_FETCH_S_MAX = 600.0
_RDKAFKA = "0.38.0"


def kafkajs_program(script: str = "admin.js") -> list[str]:
    """The command that runs a script of tests/kafkajs."""
    node = _found("node", "npm")
    directory = _TOOLS / "kafkajs"
    if not (directory / "node_modules" / "kafkajs").is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(_HERE / "kafkajs" / "package.json", directory)
        _fetch(["npm", "install", "--silent", "--no-fund", "--no-audit"], directory)
    shutil.copy(_HERE / "kafkajs" / script, directory)
    return [node, str(directory / script)]


def kafkajs_login(bootstrap: str, topic: str, mechanism: str, user: str, secret: str, *files: Path) -> Any:
    """Result of tests/kafkajs/sasl.js: the values that it read back, or the reason of a refusal."""
    command = [*kafkajs_program("sasl.js"), bootstrap, topic, mechanism, user, secret, *map(str, files)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def franz_program() -> list[str]:
    """The program that tests/franz is the source of; compiling it takes half a minute, once."""
    return _go_program("franz-go-admin", _HERE / "franz")


def go_sasl_program() -> list[str]:
    """The program that tests/gosasl is the source of."""
    return _go_program("go-sasl", _HERE / "gosasl")


def go_transactions_program() -> list[str]:
    """The program that tests/gosasl/transactions is the source of."""
    return _go_program("go-transactions", _HERE / "gosasl" / "transactions")


def franz_sources() -> Path:
    """The directory of franz-go's sources with its own tests, of the version in tests/gosasl/go.mod."""
    command = [_found("go"), "mod", "download", "-json", "github.com/twmb/franz-go"]
    return Path(json.loads(_fetch(command, _HERE / "gosasl"))["Dir"])


def rdkafka_crate() -> Path:
    """The directory of the crate rdkafka (Rust on librdkafka) with its own tests, to be compiled by `cargo test`."""
    cargo = _found("cargo", "cmake")
    directory = _TOOLS / f"rdkafka-{_RDKAFKA}"
    if not directory.is_dir():
        wanted = _TOOLS / "rdkafka-wanted"
        (wanted / "src").mkdir(parents=True, exist_ok=True)
        (wanted / "src" / "lib.rs").touch()
        package = '[package]\nname = "wanted"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n'
        (wanted / "Cargo.toml").write_text(f'{package}[dependencies]\nrdkafka = "={_RDKAFKA}"\n')
        found = json.loads(_fetch([cargo, "metadata", "--format-version", "1"], wanted))
        (manifest,) = [each["manifest_path"] for each in found["packages"] if each["name"] == "rdkafka"]
        shutil.copytree(Path(manifest).parent, directory)
        _fetch([cargo, "generate-lockfile"], directory)
    return directory


def _go_program(name: str, sources: Path) -> list[str]:
    go = _found("go")
    program = _TOOLS / name
    newest = max(source.stat().st_mtime for source in sources.iterdir())
    if not program.exists() or program.stat().st_mtime < newest:
        _TOOLS.mkdir(parents=True, exist_ok=True)
        _fetch([go, "build", "-o", str(program), "."], sources)
    return [str(program)]


def _found(program: str, *others: str) -> str:
    for name in (program, *others):
        if shutil.which(name) is None:
            raise Unobtainable(f"{name} is not installed")
    return shutil.which(program) or program


def _fetch(command: list[str], directory: Path) -> str:
    outcome = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=_FETCH_S_MAX, check=False)
    if outcome.returncode != 0:
        raise Unobtainable(f"{' '.join(command)}: {(outcome.stdout + outcome.stderr)[-300:]}")
    return outcome.stdout
