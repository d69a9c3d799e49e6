"""Build the documents as a site with search: python tools/site.py [DIRECTORY], by default `site`.

The sources are docs/, the reference pages that are written from the code, and the pages of the repository's root;
Zensical builds them, and every link and anchor of the result is checked, without the network.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import reference

ROOT = Path(__file__).parent.parent
ROOT_PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")


def main(target: Path) -> int:
    with tempfile.TemporaryDirectory() as temporary:
        stage = Path(temporary)
        prepare(stage)
        done = subprocess.run(
            [sys.executable, "-m", "zensical", "build", "--clean"], cwd=stage, capture_output=True, text=True
        )
        if done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
            return 1
        broken = sorted(set(broken_links(stage / "site")))
        for page, link in broken:
            sys.stderr.write(f"{page}: broken link {link}\n")
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(stage / "site", target)
    sys.stderr.write(f"{sum(1 for _ in target.rglob('*.html'))} pages in {target}\n")
    return 1 if broken else 0


def prepare(stage: Path) -> None:
    """Copy and write the sources below `stage/docs`, with links to the repository's root made to fit."""
    docs = stage / "docs"
    shutil.copytree(ROOT / "docs", docs)
    shutil.copytree(ROOT / "deploy", docs / "deploy")
    shutil.copy(ROOT / "Containerfile", docs / "Containerfile.txt")
    shutil.copy(ROOT / "mkdocs.yml", stage)
    reference.main(docs / "reference")
    (docs / "decisions" / "README.md").rename(docs / "decisions" / "index.md")
    _write_index(docs / "internals", "Internals", "One page per engine; ARCHITECTURE is the map of the source.")
    for page in docs.glob("*.md"):
        page.write_text(
            page.read_text()
            .replace("](../README.md", "](index.md")
            .replace("](../Containerfile)", "](Containerfile.txt)")
            .replace("](../", "](")
        )
    nav = (ROOT / "mkdocs.yml").read_text()
    for page in docs.glob("*.md"):
        if f" {page.name}" not in nav:
            sys.stderr.write(f"{page.name} is not named in mkdocs.yml, under nav\n")
    for name in ROOT_PAGES:
        (docs / name).write_text((ROOT / name).read_text().replace("](docs/", "]("))


def _write_index(directory: Path, title: str, purpose: str) -> None:
    pages = [
        (page.name, page.read_text().splitlines()[0].removeprefix("# ")) for page in sorted(directory.glob("*.md"))
    ]
    lines = "".join(f"- [{heading}]({name})\n" for name, heading in pages)
    (directory / "index.md").write_text(f"# {title}\n\n{purpose}\n\n{lines}")


def broken_links(site: Path) -> Iterator[tuple[str, str]]:
    pages = {path: _Page.of(path) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        for link in page.links:
            address, anchor = urldefrag(link)
            if re.match(r"[a-z]+:|//", address):
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target)
            if not target.exists() or (anchor and known and unquote(anchor) not in known.anchors):
                yield str(path.relative_to(site)), link


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = {"__skip", "__toc"}

    @classmethod
    def of(cls, path: Path) -> "_Page":
        page = cls()
        page.feed(path.read_text())
        return page

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if (link := given.get("href") or given.get("src")) and tag in ("a", "img", "link", "script"):
            self.links.add(link)
        if anchor := given.get("id") or given.get("name"):
            self.anchors.add(anchor)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site"))
