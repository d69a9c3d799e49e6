"""Write what belongs to a release beside the wheel: an SBOM (CycloneDX 1.5, JSON) and the release notes.

    python tools/release.py DIRECTORY

The SBOM lists the packages that the environment of this Python has for `odradek` without extras.
"""

import json
import re
import sys
import uuid
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent


def main(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    own = distribution("odradek")
    (directory / f"odradek-{own.version}.cdx.json").write_text(json.dumps(sbom(own), indent=2) + "\n")
    (directory / f"release-notes-{own.version}.md").write_text(release_notes(own.version))


def sbom(own: Distribution) -> dict[str, object]:
    found = dict(_needed(own))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"component": _component(own, "application")},
        "components": [_component(package, "library") for package in found.values()],
        "dependencies": [
            {"ref": _purl(package), "dependsOn": sorted(_purl(needed) for _, needed in _direct(package))}
            for package in (own, *found.values())
        ],
    }


def release_notes(version: str) -> str:
    """The section of CHANGELOG.md about the version."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(version)}.*?\n(.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE)
    assert section, f"CHANGELOG.md says nothing of {version}"
    return f"# Odradek {version}\n\n{section[1].strip()}\n"


def _needed(package: Distribution) -> Iterator[tuple[str, Distribution]]:
    seen: dict[str, Distribution] = {}
    waiting = [package]
    while waiting:
        for name, needed in _direct(waiting.pop()):
            if name not in seen:
                seen[name] = needed
                waiting.append(needed)
    yield from sorted(seen.items())


def _direct(package: Distribution) -> Iterator[tuple[str, Distribution]]:
    """Packages that it requires on this system, without extras."""
    for requirement in map(Requirement, package.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found = distribution(requirement.name)
            yield found.name.lower(), found


def _component(package: Distribution, kind: str) -> dict[str, object]:
    licence = package.metadata.get("License-Expression") or package.metadata.get("License") or "unknown"
    return {
        "type": kind,
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
        "licenses": [{"license": {"name": licence.splitlines()[0]}}],
    }


def _purl(package: Distribution) -> str:
    return f"pkg:pypi/{package.name.lower().replace('_', '-')}@{package.version}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
