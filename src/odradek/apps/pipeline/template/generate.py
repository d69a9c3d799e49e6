"""Sample data: orders of a shop, most of them good, some late, some twice, some broken.

python generate.py [--rate 200] [--seconds 30] [--bootstrap-server BOOTSTRAP]
"""

import argparse
import sys

from odradek.apps.pipeline.sample_orders import CATEGORIES, OrderMaker, Shop


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=200, help="orders a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--bootstrap-server", default="BOOTSTRAP")
    told = parser.parse_args()
    try:
        with Shop(told.bootstrap_server, orders="NAME.orders", categories="NAME.categories") as shop:
            shop.describe(CATEGORIES)
            sent = shop.sell(OrderMaker(seed=1), told.rate, told.seconds)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # no broker, no topic
        sys.exit(f"error: {error}")
    print(f"{sent.total:,} records: {sent.good:,} orders, {sent.twice:,} sent twice, {sent.bad:,} broken or too late")


if __name__ == "__main__":
    main()
