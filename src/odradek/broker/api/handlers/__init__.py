"""One module per API key. Importing a module registers its handler; `load_all` imports them all."""

from importlib import import_module
from pkgutil import iter_modules


def load_all() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
