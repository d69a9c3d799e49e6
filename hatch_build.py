"""Building the package: with the compiled inner loop where there is a C compiler, without it elsewhere.

ODRADEK_PURE=1 leaves it out, for a wheel that runs everywhere.
"""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent / "tools"))

from build_inner_loop import LIBRARY, SOURCE, NotBuilt, build


class InnerLoopHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if os.environ.get("ODRADEK_PURE", "0") not in ("", "0"):
            return
        self._scratch = tempfile.TemporaryDirectory()
        is_editable = version == "editable"
        try:
            library = build(SOURCE.parent if is_editable else Path(self._scratch.name))
        except NotBuilt as why:
            self.app.display_warning(f"inner loop: python ({why})")
            return
        if not is_editable:
            build_data["force_include"][str(library)] = f"odradek/native/{LIBRARY}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"cp311-abi3-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_scratch"):
            self._scratch.cleanup()
