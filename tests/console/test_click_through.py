"""Every screen, clicked through in a real browser against a real cluster, in the order of a day's work."""

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from odradek.base.errors import ErrorCode, FatalError
from odradek.client.broker_client import BrokerClient
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.record_batch import NO_TIMESTAMP, build_batch
from odradek.protocol.records import Record
from odradek.testing import OdradekCluster
from waiting import eventually

from .conftest import await_handshake, commit, create_topic

PATIENCE_S = 60

expect = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright").expect
expect.set_options(timeout=PATIENCE_S * 1000)


def _open(page: Any, path: str) -> None:
    page.goto(path)
    await_handshake(page)


def _button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def _confirm(page: Any, name: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=name, exact=True).click()


def test_a_topic_is_created_and_a_record_written_and_found(page: Any) -> None:
    _open(page, "/topics")
    _button(page, "Create topic").click()
    page.get_by_label("Name").fill("no such / name")
    _confirm(page, "Create")
    expect(page.get_by_text("contains one or more characters other than")).to_be_visible()
    page.get_by_label("Name").fill("letters")
    expect(page.get_by_text("Creates topic letters: 3 partitions × 3 replicas = 9 logs")).to_be_visible()
    _confirm(page, "Create")
    page.get_by_role("link", name="letters").click()
    expect(page.locator("[data-partition]")).to_have_count(3)

    _open(page, "/messages?topic=letters")
    expect(page.get_by_text("No record was found.")).to_be_visible()
    _button(page, "Produce").click()
    page.get_by_label("Key (empty: none)").fill("milena")
    page.get_by_label("Value", exact=True).fill('{"from": "Praha"}')
    page.get_by_label("Headers, one on a line: name: value").fill("post: morning")
    _confirm(page, "Produce")
    record = page.locator("details.record")
    expect(record).to_have_count(1)
    record.locator("summary").click()
    expect(record.locator("pre").first).to_have_text(re.compile(r'\{\s+"from": "Praha"\s+\}'))
    expect(record).to_contain_text("post: morning")

    _open(page, "/")
    expect(page.get_by_text("create topic letters with 3 partitions × 3 replicas").first).to_be_visible()


def test_a_setting_is_changed_and_told_where_it_comes_from(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "kept")
    _open(page, "/topics/kept")
    expect(page.locator("[data-partition]")).to_have_count(3)
    switch = page.get_by_role("switch", name="only what is set on the topic")
    switch.click()
    expect(switch).not_to_be_checked()
    row = page.locator("tr", has=page.locator("summary", has_text=re.compile("^retention.ms$")))
    expect(row).to_contain_text("default")
    row.get_by_role("button", name="Change").click()
    page.get_by_label("Value (empty: back to the default)").fill("60000")
    _confirm(page, "Change")
    expect(row).to_contain_text("60000")
    expect(row).to_contain_text("topic")


def test_all_of_it_can_be_done_with_keys(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "typed", 1)
    _open(page, "/")
    page.keyboard.press("2")
    page.wait_for_url("**/topics")
    await_handshake(page)
    page.keyboard.press("/")
    page.keyboard.type("typ")
    expect(page.locator(".main a.name")).to_have_text(["typed"])
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    _button(page, "Create topic").focus()
    page.keyboard.press("Enter")
    first_field = page.get_by_role("dialog").get_by_role("textbox").first
    expect(first_field).to_be_focused()
    page.keyboard.type("no such / name")
    page.keyboard.press("Enter")
    expect(page.get_by_text("contains one or more characters other than")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    _open(page, "/topics/typed")
    _button(page, "Delete").focus()
    page.keyboard.press("Enter")
    expect(first_field).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Enter")
    page.wait_for_url("**/topics")


def test_records_are_hostile_and_stay_text(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "hostile", 1)
    script = "<script>document.title='run'</script><img src=x onerror=alert(1)>"
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})
    producer.produce("hostile", key=script, value=script, headers={"<svg onload=alert(2)>": script.encode()})
    producer.produce("hostile", key=b"\xff\x00\xfe", value=bytes(range(256)))
    producer.produce("hostile", key="large", value="x" * 900_000)
    assert producer.flush(30) == 0
    group = "<b onmouseover=alert(3)>group</b>"
    commit(three_brokers.bootstrap_servers, group, TopicPartition("hostile", 0, 1))
    intruder = Consumer(
        {
            "bootstrap.servers": three_brokers.bootstrap_servers,
            "group.id": "</title><script>alert(6)</script>",
            "client.id": "<img src=x onerror=alert(7)>",
            "group.instance.id": "<svg onload=alert(8)>",
            "log_level": 0,
        }
    )
    intruder.subscribe(["hostile"])
    _poll_until(lambda: bool(intruder.assignment()), intruder)

    _open(page, "/messages?topic=hostile")
    records = page.locator("details.record")
    expect(records).to_have_count(3)
    for number in range(3):
        records.nth(number).locator("summary").click()
    expect(page.locator("body")).to_contain_text(script)
    expect(page.locator("body")).to_contain_text("00000010  10 11 12")
    expect(page.locator("body")).to_contain_text("more")
    _open(page, "/groups")
    page.get_by_role("link", name=group).click()
    expect(page.locator("h1")).to_have_text(group)
    _open(page, "/groups")
    page.get_by_role("link", name="</title><script>").click()
    for row in page.locator("tr", has_text="<svg onload=alert(8)>").all():  # as a member, and in why it rebalanced
        expect(row).to_contain_text("<img src=x onerror=alert(7)>")
    expect(page.locator("tr", has_text="<svg onload=alert(8)>")).to_have_count(2)
    assert page.title() == "</title><script>alert(6)</script> · Odradek"
    intruder.close()
    _open(
        page,
        "/messages?topic=%3Cimg%20src%3Dx%20onerror%3Dalert(4)%3E&partition=%22%3E%3Cscript%3Ealert(5)%3C/script%3E",
    )
    expect(page.get_by_role("alert").first).to_be_visible()
    assert page.title() == "Messages · Odradek"
    assert page.locator(".main img, .main svg[onload], .main script").count() == 0


def test_a_group_shows_its_lag_and_is_reset(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "parcels", 2)
    producer = Producer({"bootstrap.servers": three_brokers.bootstrap_servers, "log_level": 0})
    for number in range(200):
        producer.produce("parcels", json.dumps({"n": number}), partition=number % 2)
    assert producer.flush(30) == 0
    places = [TopicPartition("parcels", 0, 30), TopicPartition("parcels", 1, 100)]
    commit(three_brokers.bootstrap_servers, "post", *places)

    _open(page, "/groups/post")
    row = page.locator(".main tr", has_text="parcels-0")
    expect(row).to_contain_text("70")
    producer.produce("parcels", "one more", partition=0)
    assert producer.flush(30) == 0
    expect(row).to_contain_text("71")

    _button(page, "Reset offsets").click()
    _button(page, "Preview").click()
    expect(page.get_by_role("dialog").locator("tr", has_text="parcels-0")).to_contain_text("101")
    _confirm(page, "Reset")
    expect(row).to_contain_text("101")


def test_a_group_tells_why_it_rebalanced(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "errands", 2)

    def clerk(name: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": three_brokers.bootstrap_servers,
                "group.id": "clerks",
                "client.id": name,
                "log_level": 0,
            }
        )
        consumer.subscribe(["errands"])
        return consumer

    first, second = clerk("blumfeld"), clerk("gregor")
    _poll_until(lambda: bool(first.assignment() and second.assignment()), first, second)
    _open(page, "/groups/clerks")
    expect(page.get_by_text("blumfeld (127.0.0.1) joined").first).to_be_visible()
    second.close()
    _poll_until(lambda: len(first.assignment()) == 2, first)
    expect(page.get_by_text("gregor (127.0.0.1) left").first).to_be_visible()
    first.close()


def _poll_until(is_so: Callable[[], bool], *consumers: Consumer) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        for consumer in consumers:
            consumer.poll(0.1)


def test_a_plan_is_run_and_undone(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "movable", 2)
    _open(page, "/reassign")
    page.get_by_label("Goal").click()
    page.get_by_role("option", name="Change the number of replicas").click()
    page.get_by_label("Replicas").fill("2")
    page.get_by_label("Topics (empty: all)").fill("movable")
    _button(page, "Plan").click()
    expect(page.locator("tr", has_text="movable-1")).to_be_visible()
    page.get_by_text("Run this plan").click()
    expect(page.get_by_text("Moves replicas of 2 partitions")).to_be_visible()
    _confirm(page, "Run")
    completed = page.locator("tr", has_text="completed")
    expect(completed).to_have_count(1)
    eventually(lambda: _replicas(three_brokers, "movable") == [2, 2])  # whichever broker is asked

    completed.get_by_text("Undo").click()
    page.get_by_text("Run this plan").click()
    _confirm(page, "Run")
    expect(completed).to_have_count(2)
    eventually(lambda: _replicas(three_brokers, "movable") == [3, 3])


def _replicas(cluster: OdradekCluster, topic: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    return [len(p.replicas) for p in admin.list_topics(topic, 30).topics[topic].partitions.values()]


def test_a_broker_is_killed_and_it_can_be_seen_and_replayed(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "watched", 3)
    _open(page, "/lab?topic=watched")
    strip = page.locator(".strip[data-isr*='2'][data-leader='2']")
    expect(strip).to_have_count(1)
    number = strip.get_attribute("data-partition")
    moved = page.locator(f"[data-partition='{number}']")
    page.locator("[data-broker='2'] button", has_text="Kill").click()
    _confirm(page, "Kill")
    expect(moved).not_to_have_attribute("data-leader", "2")
    expect(moved).not_to_have_attribute("data-isr", re.compile("2"))
    expect(page.get_by_role("alert").first).to_contain_text("1 broker down: 2.")

    _open(page, "/")
    expect(page.get_by_role("status")).to_contain_text("Broker 2 is down")
    alert = page.locator("tr", has=page.get_by_role("link", name="Broker 2 is down.", exact=True))
    expect(alert).to_contain_text("active")

    _open(page, "/history")
    expect(page.locator(".moment", has_text="broker 2 left").first).to_be_visible()
    here = page.locator(".moment", has_text=f"watched-{number}: leader 2 →").first
    here.locator("button").click()
    expect(page.locator(".brokerbox[data-broker='2']")).to_contain_text("down")
    here.locator("summary", has_text="controller step").click()
    expect(here).to_contain_text("LeaderAndIsr")
    _step_back_until(page, lambda: "down" not in page.locator(".brokerbox[data-broker='2']").inner_text())

    _open(page, "/lab?topic=watched")
    page.locator("[data-broker='2'] button", has_text="Start").click()
    _confirm(page, "Start")
    expect(moved).to_have_attribute("data-isr", re.compile("2"))
    _open(page, "/topics/watched")
    _elect_until(page, moved, "2")


def _step_back_until(page: Any, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        page.get_by_label("Earlier").click()
        time.sleep(0.5)


def _elect_until(page: Any, strip: Any, leader: str) -> None:
    """An election finds the replica in sync only when the controller knows it too."""
    deadline = time.monotonic() + PATIENCE_S
    while strip.get_attribute("data-leader") != leader:
        assert time.monotonic() < deadline
        _button(page, "Elect preferred").click()
        _confirm(page, "Elect")
        page.get_by_role("dialog").wait_for(state="detached")
        time.sleep(1)


def test_a_broker_is_cut_off_fenced_and_healed(page: Any, three_brokers: OdradekCluster) -> None:
    create_topic(three_brokers.bootstrap_servers, "ferry", 3)
    try:
        _cut_and_heal(page, three_brokers)
    finally:
        for broker in range(3):  # whatever went wrong is nothing to the tests that follow
            with suppress(FatalError):  # it isn't cut off
                three_brokers.heal(broker)


def _cut_and_heal(page: Any, three_brokers: OdradekCluster) -> None:
    _open(page, "/lab?topic=ferry")
    ruler = page.locator(".brokerbox", has_text="controller, epoch")
    expect(ruler).to_have_count(1)
    cut = ruler.get_attribute("data-broker")
    box = page.locator(f".brokerbox[data-broker='{cut}']")
    number = page.locator(f".strip[data-leader='{cut}']").first.get_attribute("data-partition")
    strip = page.locator(f".strip[data-partition='{number}']")

    box.get_by_role("button", name="Isolate").click()
    expect(page.get_by_text(f"Isolates broker {cut} from ZooKeeper")).to_be_visible()
    _confirm(page, "Isolate")
    expect(box).to_contain_text("isolated from ZooKeeper")
    expect(box).to_contain_text("it has no session")
    expect(strip).not_to_have_attribute("data-leader", cut)
    expect(strip).not_to_have_attribute("data-isr", re.compile(cut))
    expect(ruler).to_have_count(1)
    expect(ruler).not_to_have_attribute("data-broker", cut)

    # The two others replicate from the new leader. The isolated broker believes that it still leads, and acknowledges
    # nothing. It is asked directly: librdkafka may ask any broker for metadata, and then finds the new leader.
    addresses = three_brokers.bootstrap_servers.split(",")
    isolated = addresses.pop(int(cut))
    acknowledged: list[Any] = []
    producer = Producer({"bootstrap.servers": ",".join(addresses), "acks": "all", "log_level": 0})
    producer.produce("ferry", "first", partition=int(number), on_delivery=lambda e, _: acknowledged.append(e))
    assert producer.flush(PATIENCE_S) == 0
    assert acknowledged == [None]
    assert _error_of_produce(isolated, "ferry", int(number)) != ErrorCode.NONE

    box.get_by_role("button", name="Reconnect").click()
    _confirm(page, "Reconnect")
    expect(box).not_to_contain_text("isolated")
    expect(box).to_contain_text("in the cluster")
    expect(strip).to_have_attribute("data-isr", re.compile(cut))


def _error_of_produce(address: str, topic: str, partition: int) -> ErrorCode:
    record = Record(0, NO_TIMESTAMP, None, b"never acknowledged")
    data = PartitionProduceData(index=partition, records=build_batch([record]))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    host, port = address.split(":")
    with BrokerClient(host, int(port)) as client:
        answer = client.send(ProduceRequest(acks=-1, timeout_ms=2_000, topic_data=topics))
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_what_is_not_there_is_said(page: Any) -> None:
    _open(page, "/topics/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("There is no topic nowhere")
    expect(_button(page, "Delete")).to_be_hidden()
    page.goto("/groups/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("There is no group nowhere")
    assert page.goto("/nowhere").status == 404
    expect(page.get_by_role("alert")).to_contain_text("There is no page /nowhere")
    expect(page.get_by_role("link", name="Topics")).to_be_visible()
    _open(page, "/pipelines")
    expect(page.get_by_text("No project is known here")).to_be_visible()
    _open(page, "/messages?topic=letters&offset=soon")
    expect(page.get_by_text("'soon' is not an offset")).to_be_visible()
