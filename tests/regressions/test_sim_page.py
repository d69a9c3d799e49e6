"""The page on which people break a cluster, in Chromium: `make sim-page` builds the same."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PYODIDE = Path(os.environ.get("ODRADEK_PYODIDE", ROOT / ".tools/pyodide")) / "node_modules/pyodide"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_MS = 300_000

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not PYODIDE.is_dir(), reason="pyodide is absent (make pyodide)"),
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine (apt-get install chromium)"),
]


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    target = tmp_path_factory.mktemp("sim-page")
    subprocess.run([sys.executable, ROOT / "tools/sim_page", target, PYODIDE], check=True, stdout=subprocess.DEVNULL)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=target)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page(bypass_csp=True)
        page.set_default_timeout(PATIENCE_MS)
        yield page
        browser.close()


def events(page: Any) -> str:
    return str(page.inner_text("#events"))


STEP = "to => { while (Number(document.body.dataset.round) < to) document.getElementById('step').click() }"


def pause(page: Any, round_number: int) -> None:
    """Let rounds pass up to that one, and no more."""
    page.wait_for_function("document.body.dataset.round !== undefined", polling=100)
    page.evaluate(STEP, round_number)


def test_a_cluster_is_broken_in_a_browser_and_the_address_repeats_it(page: Any, address: str) -> None:
    page.goto(f"{address}#seed=7")
    pause(page, 30)
    page.click("[data-broker='0'] >> text=kill -9")
    pause(page, 80)
    assert "broker 0: kill" in events(page)
    assert "broker 0: session expires" in events(page)
    assert "leader 0 → " in events(page)
    assert "none lost" in page.inner_text("#verdict")
    page.click("[data-broker='0'] >> text=start")
    pause(page, 200)
    isrs = page.locator("#partitions tr td:last-child").all_inner_texts()[1:]
    assert [len(isr.split(", ")) for isr in isrs] == [3, 3, 3]
    told, link = events(page), page.evaluate("location.href")
    assert "seed=7&do=" in link
    page.goto("about:blank")
    page.goto(link)
    pause(page, 200)
    assert events(page) == told
