"""`odradek completion bash|zsh|fish`: completion of commands, options, topics and groups by a shell.

The shell's script asks `odradek completion words -- WORDS…` at every tab. Commands and options come from their own
declarations, so no second list exists; names of topics and groups come from the cluster, if it answers at once.
"""

from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from odradek.apps.cli.default_cluster import bootstrap_by_default, use_data, use_profile
from odradek.apps.cli.grammar.declaration import Argument, Parameter
from odradek.apps.cli.grammar.leading import leading_options
from odradek.apps.cli.grammar.noun import Command, Noun, command
from odradek.apps.cli.main import ALIASES, COMMANDS
from odradek.apps.cli.usage import WrongUsage
from odradek.base.errors import ConfigError, FatalError, KafkaError
from odradek.client.broker_client import ConnectionFailed, UnsupportedByBroker
from odradek.client.cluster_client import ClusterClient
from odradek.client.group_admin import list_groups

_PATIENCE_MS = 1_000
_SCRIPTS = {
    "bash": """\
_odradek() {
  local IFS=$'\\n'
  COMPREPLY=($(odradek completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _odradek odradek""",
    "zsh": """\
#compdef odradek
_odradek() {
  local -a found
  found=("${(@f)$(odradek completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
compdef _odradek odradek""",
    "fish": """\
function __odradek
  set -l words (commandline -opc) (commandline -ct)
  odradek completion words -- $words[2..-1] 2>/dev/null
end
complete -c odradek -a '(__odradek)'""",
}


@command(
    examples=[
        "odradek completion bash > ~/.local/share/bash-completion/completions/odradek",
        'odradek completion zsh > "${fpath[1]}/_odradek"',
        "odradek completion fish > ~/.config/fish/completions/odradek.fish",
    ]
)
def completion(
    shell: Annotated[str, Argument(metavar="bash|zsh|fish", help="The shell to print a script for.")],
    words: Annotated[list[str] | None, Argument(hidden=True)] = None,
) -> None:
    """Print the script that makes a shell complete our commands."""
    if shell == "words":
        print("\n".join(suggestions(words or [""])))
    elif shell in _SCRIPTS:
        print(_SCRIPTS[shell])
    else:
        raise WrongUsage(f"'{shell}' is not one of {', '.join(_SCRIPTS)}")


def suggestions(words: list[str]) -> list[str]:
    """Return the words that complete the last one, which is typed in part."""
    *before, begun = words
    return sorted({word for word in _candidates(before, begun) if word.startswith(begun)})


def _candidates(before: list[str], begun: str) -> list[str]:
    moved, before = leading_options(before)
    if not before:
        from odradek.apps.cli.kafka.tool import TOOLS

        return [*COMMANDS, *TOOLS, "--help", "--version"]
    name, rest = before[0], [*moved, *before[1:]]
    if name.startswith("kafka-"):
        return _kafka_candidates(name, rest)
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        return []
    entry = COMMANDS[name]
    found = getattr(import_module(entry.module), entry.attribute)
    if isinstance(found, Noun):
        verb = next((word for word in rest if word in found.verbs), None)
        return [*found.verbs, "--help"] if verb is None else _words(found.verbs[verb], rest, begun)
    return _words(found, rest, begun) if isinstance(found, Command) else ["--help"]


def _words(command: Command, before: list[str], begun: str) -> list[str]:
    """Return the words that may come next in a command: an option, the value of the last one, or an argument."""
    parameters = [parameter for parameter in command.parameters if not parameter.declared.hidden]
    options = {name: parameter for parameter in parameters if parameter.option for name in parameter.option.names}
    last = before[-1] if before else ""
    if last in options and not options[last].is_flag:
        return options[last].choices or _names(options[last], before)
    longs = [name for name in options if name.startswith("--")]
    if begun.startswith("-"):
        return [*longs, "--help"]
    argument = next((p for p in parameters if p.option is None or p.option.placed), None)
    if argument is None:
        return longs
    return argument.choices or _names(argument, before)


def _kafka_candidates(tool: str, before: list[str]) -> list[str]:
    from odradek.apps.cli.kafka.tool import TOOLS, table_of

    if tool not in TOOLS:
        return []
    table = table_of(tool)
    last = before[-1].removeprefix("--") if before else ""
    if last in table.options and table.option(last).value is not None:
        return _names_of(last, before)
    return [f"--{name}" for name in table.options]


def _names(parameter: Parameter, before: list[str]) -> list[str]:
    """Names of topics or groups, where the option or the argument takes one."""
    words = parameter.option.names if parameter.option else [f"--{parameter.metavar.lower()}"]
    return next((_names_of(kind, before) for kind in ("topic", "group") if f"--{kind}" in words), [])


def _names_of(kind: str, before: list[str]) -> list[str]:
    if kind not in ("topic", "group"):
        return []
    try:
        with ClusterClient(_bootstrap(before), client_id="odradek-completion", timeout_ms=_PATIENCE_MS) as client:
            return list(client.topics()) if kind == "topic" else [item.group for item in list_groups(client)]
    except (KafkaError, ConnectionFailed, UnsupportedByBroker, FatalError, ConfigError):
        return []


def _bootstrap(before: list[str]) -> str:
    """Address of the cluster that the words name, else of the default cluster."""
    named = dict(pairwise(before))
    if data := named.get("--data"):
        use_data(Path(data))
    elif profile := named.get("--profile"):
        use_profile(profile)
    return named.get("--bootstrap-server") or named.get("-b") or bootstrap_by_default()
