import sys
import threading

from odradek.broker.quotas.core.failed_logins import _ADDRESSES_MAX, FailedLogins, network_of


def test_an_address_waits_for_the_next_second_and_others_do_not() -> None:
    failed = FailedLogins(3)
    for at_ms in (1000, 1200):
        failed.failed("a", at_ms)
        assert failed.wait_ms("a", at_ms) == 0
    failed.failed("a", 1300)
    assert [failed.wait_ms("a", at_ms) for at_ms in (1300, 1900, 2000, 5000)] == [700, 100, 0, 0]
    assert failed.wait_ms("b", 1300) == 0
    failed.failed("a", 2500)
    assert failed.wait_ms("a", 2500) == 0, "a second of its own"


def test_an_address_that_goes_on_waits_longer_each_time_and_starts_over_when_it_stops() -> None:
    failed, now_ms, waits = FailedLogins(2), 0, []
    for _ in range(6):
        for _ in range(3):
            failed.failed("a", now_ms)
        waits.append(failed.wait_ms("a", now_ms))
        now_ms += waits[-1]
    assert waits == [1000, 2000, 4000, 8000, 10_000, 10_000]
    failed.failed("a", now_ms)
    assert failed.wait_ms("a", now_ms) == 0, "one more failure is no flood"
    now_ms += 10_000
    for _ in range(2):
        failed.failed("a", now_ms)
    assert failed.wait_ms("a", now_ms) == 1000


def test_connections_after_a_hold_count_before_their_logins_are_judged() -> None:
    failed = FailedLogins(3)
    assert [failed.connected("a", 0) for _ in range(5)] == [0] * 5, "no login has failed yet"
    for _ in range(3):
        failed.failed("a", 0)
    assert failed.connected("a", 400) == 600
    assert [failed.connected("a", 1000) for _ in range(5)] == [0, 0, 0, 2000, 2000]
    assert failed.connected("b", 1000) == 0


def test_connections_after_a_hold_that_log_in_do_not_count() -> None:
    failed = FailedLogins(3)
    for _ in range(3):
        failed.failed("a", 0)
    for at_ms in range(1000, 1100):
        assert failed.connected("a", at_ms) == 0
        failed.succeeded("a")
    for at_ms in range(3000, 3010):
        assert failed.connected("a", at_ms) == 0, "a while without failures: forgotten"


def test_addresses_have_a_bound_and_the_busiest_stay() -> None:
    failed = FailedLogins(2)
    for n in range(_ADDRESSES_MAX * 2):
        failed.failed(f"address {n}", 1000)
        failed.failed("busy", 1000)
    assert len(failed._windows) <= _ADDRESSES_MAX
    assert failed.wait_ms("busy", 1000) == 1000


def test_threads_that_count_at_once_do_not_disturb_each_other() -> None:
    """A flood from more addresses than are kept; one address of version 6 is a network of them."""
    failed, faults = FailedLogins(100), []
    for number in range(_ADDRESSES_MAX):
        failed.failed(str(number), 0)

    def count(name: str) -> None:
        try:
            for number in range(20_000):
                failed.failed(f"{name}-{number}", 0)
        except RuntimeError as error:
            faults.append(error)

    threads = [threading.Thread(target=count, args=(name,)) for name in "abcd"]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert faults == []
    assert len(failed._windows) <= _ADDRESSES_MAX + len(threads)


def test_addresses_of_one_network_of_version_6_count_as_one() -> None:
    failed = FailedLogins(3)
    for host in range(3):
        failed.failed(f"2001:db8:1:2:{host:x}::7", 0)
    assert failed.wait_ms("2001:db8:1:2:ffff::1", 400) == 600
    assert failed.connected("2001:db8:1:2::", 400) == 600
    assert failed.wait_ms("2001:db8:1:3::1", 400) == 0
    assert [network_of(address) for address in ("10.0.0.7", "::1", "fe80::1%eth0", "x:y")] == [
        "10.0.0.7", "::", "fe80::", "x:y",
    ]  # fmt: skip
