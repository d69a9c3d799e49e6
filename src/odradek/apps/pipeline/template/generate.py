"""Sample data: orders of a shop, most of them good, some late, some twice, some broken.

python generate.py [--rate 200] [--seconds 30] [--seed N] [--bootstrap-server {{bootstrap}}]
"""

import argparse
import sys
import time

from odradek.apps.pipeline.sample_orders import CATEGORIES, OrderMaker, Shop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=200, help="orders a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--bootstrap-server", default="{{bootstrap}}")
    parser.add_argument("--seed", type=int, default=time.time_ns(), help="the same orders for the same seed")
    options = parser.parse_args()
    try:
        with Shop(options.bootstrap_server, orders="{{name}}.orders", categories="{{name}}.categories") as shop:
            shop.describe(CATEGORIES)
            sent = shop.sell(OrderMaker(options.seed), options.rate, options.seconds)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # no broker, no topic
        sys.exit(f"error: {error}")
    print(f"{sent.total:,} records: {sent.good:,} orders, {sent.twice:,} sent twice, {sent.bad:,} broken or too late")


if __name__ == "__main__":
    main()
