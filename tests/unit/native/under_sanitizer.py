"""`python under_sanitizer.py LIBRARY INPUTS`: the comparisons of the twins, under AddressSanitizer."""

import random
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

NAME = "odradek.native._inner_loop"


def main(path: str, inputs: int) -> None:
    spec = spec_from_loader(NAME, ExtensionFileLoader(NAME, path))
    assert spec is not None
    assert spec.loader is not None
    sys.modules[NAME] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[NAME])
    sys.path.append(str(Path(__file__).parents[2] / "wire"))
    from test_column_twins import compare as compare_columns
    from test_compiled_decoder import compare as compare_messages
    from test_compiled_encoder import compare as compare_written
    from test_fetch_twins import compare as compare_fetches
    from test_produce_twins import compare as compare_ends
    from test_twins import compare as compare_batches

    from odradek.native.load import compiled

    assert compiled is sys.modules[NAME]
    seed = random.randrange(2**32)
    print(f"seed {seed}: {compare_messages(seed, 5 * inputs)} messages read, batches {compare_batches(seed, inputs)}")
    print(f"{compare_ends(seed, inputs)} headers read, {compare_fetches(seed, inputs)} fetches answered")
    print(f"{compare_written(seed, 5 * inputs)} messages written")
    print(f"{compare_columns(seed, inputs)} chunks of records read")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
