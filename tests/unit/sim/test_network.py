"""Messages of the simulated network."""

from odradek.sim.network import Network


def posted(network: Network, text: str, channel: object = None) -> list[str]:
    events: list[str] = []
    network.post(text, lambda: events.append("arrived"), lambda: events.append("lost"), channel=channel)
    return events


def texts(network: Network) -> list[str]:
    return [message.text for message in network.first_ones()]


def test_a_message_that_is_held_back_arrives_after_its_sender_gave_it_up() -> None:
    network = Network(lambda text: None)
    events = posted(network, "a")
    (message,) = network.messages
    network.hold(message)
    assert (events, texts(network)) == (["lost"], [])
    message.is_held = False
    network.arrive(message)
    assert events == ["lost", "arrived"]


def test_the_sender_of_a_message_that_is_delayed_waits() -> None:
    network = Network(lambda text: None)
    network.delays_next = lambda text: text == "b"
    events = [posted(network, text) for text in "abb"]
    assert (events, texts(network)) == ([[], [], []], ["a", "b"])
    network.heal()
    assert texts(network) == ["a", "b", "b"]


def test_nothing_arrives_from_a_full_pipe() -> None:
    network = Network(lambda text: None)
    posted(network, "a", channel="one")
    posted(network, "b", channel="one")
    posted(network, "c", channel="other")
    network.full["one"] = None
    assert texts(network) == ["c"]
    network.heal()
    assert texts(network) == ["a", "c"]
    assert network.channels() == ["one", "other"]


def test_nothing_leaves_or_reaches_a_broker_that_is_cut_off() -> None:
    network = Network(lambda text: None)
    for text, to, sender in (("to", 1, None), ("from", 2, 1), ("to itself", 1, 1), ("others", 2, 3)):
        network.post(text, lambda: None, to=to, sender=sender)
    network.cut_off.add(1)
    assert texts(network) == ["to itself", "others"]
    network.heal()
    assert len(texts(network)) == 4
