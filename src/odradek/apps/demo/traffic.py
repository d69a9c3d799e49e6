"""The shop of the demo, selling in a thread of its own."""

import threading

from odradek.apps.demo.stage import CATEGORIES, ORDERS
from odradek.apps.pipeline.sample_orders import CATEGORIES as CATEGORY_NAMES
from odradek.apps.pipeline.sample_orders import OrderMaker, Sent, Shop

_FOREVER_S = 3600.0
_EARLY_RATE = 5  # before the shop opens, so that Spark has something to begin with


class Traffic:
    def __init__(self, bootstrap: str, rate: int, seed: int = 1) -> None:
        self._bootstrap = bootstrap
        self._rate = rate
        self._maker = OrderMaker(seed)
        self._opened = threading.Event()
        self._enough = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="shop", daemon=True)
        self.sent = Sent()

    def start(self) -> None:
        self._thread.start()

    def open(self) -> None:
        """Begin to send at the full rate."""
        self._opened.set()

    def stop(self) -> Sent:
        """End the sale, and wait until all records are acknowledged; raises the reason if they are not."""
        self._enough.set()
        self._thread.join()
        self.check()
        return self.sent

    def check(self) -> None:
        """Raise the error that ended the sale, if there is one."""
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with Shop(self._bootstrap, orders=ORDERS, categories=CATEGORIES) as shop:
                shop.describe(CATEGORY_NAMES)
                shop.sell(self._maker, _EARLY_RATE, _FOREVER_S, self._waits_to_open, self.sent)
                shop.sell(self._maker, self._rate, _FOREVER_S, self._goes_on, self.sent)
        except BaseException as failure:
            self._failure = failure

    def _waits_to_open(self) -> bool:
        return not self._opened.is_set() and self._goes_on()

    def _goes_on(self) -> bool:
        return not self._enough.is_set()
