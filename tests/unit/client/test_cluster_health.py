from odradek.client.cluster_health import BrokerHealth


def test_imbalance_counts_what_a_broker_should_lead_and_does_not() -> None:
    """Leading something else doesn't make up for it."""
    broker = BrokerHealth(0, "h:1", None, leads=9, preferred=4, not_led=1, replicas=10, out_of_sync=0, directories=())
    assert broker.preferred_imbalance_percent == 25.0
    idle = BrokerHealth(1, "h:2", None, leads=0, preferred=0, not_led=0, replicas=0, out_of_sync=0, directories=())
    assert idle.preferred_imbalance_percent == 0.0
