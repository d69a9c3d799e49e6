"""CRC-32C, of the package crc32c: its compiled function alone.

The package itself reads its version when it is imported, and loads `importlib.metadata` and `email` for that: 4 MB and
a tenth of the start of a broker, or of a command.
"""

from importlib.machinery import ExtensionFileLoader, PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crc32c import crc32c
else:

    def _function():
        package = PathFinder.find_spec("crc32c")
        spec = package and PathFinder.find_spec("_crc32c", list(package.submodule_search_locations or ()))
        if not spec or not isinstance(spec.loader, ExtensionFileLoader):
            from crc32c import crc32c

            return crc32c
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.crc32c

    crc32c = _function()

__all__ = ["crc32c"]
