"""Options of a seed."""

from odradek.sim.actions import Actions
from odradek.sim.bank import Bank
from odradek.sim.copying import Copying
from odradek.sim.faults import Faults
from odradek.sim.incidents import Incidents
from odradek.sim.options import FAULTS, Options
from odradek.sim.story import steps_of
from odradek.sim.transaction_incidents import TransactionIncidents


def test_a_seed_draws_the_same_options_every_time() -> None:
    assert Options.draw(7) == Options.draw(7)
    assert Options.draw(7) != Options.draw(8)


def test_stories_differ_in_faults_brokers_and_topics() -> None:
    drawn = [Options.draw(seed) for seed in range(200)]
    assert {options.brokers for options in drawn} == {3, 4, 5}
    assert {plan.name for options in drawn for plan in options.topics} == {
        "orders",
        "recent",
        "prices",
        "__consumer_offsets",
        "ledger",
        "__transaction_state",
        "copies",
        "loose",
        "accounts",
    }
    for fault in FAULTS:
        often = {options.weights[fault] for options in drawn}
        assert 0 in often
        assert len(often) > 2


def test_a_committed_record_is_on_two_replicas_in_every_story() -> None:
    needed = set()
    for seed in range(200):
        plans = [plan for plan in Options.draw(seed).topics if not plan.is_unclean]
        assert all(plan.replication >= 3 for plan in plans)
        (in_sync,) = {plan.config["min.insync.replicas"] for plan in plans}
        needed.add(in_sync)
    assert needed == {"2", "3"}


def test_batches_have_different_sizes() -> None:
    assert {Options.draw(seed).records_max for seed in range(50)} == {1, 3, 8}


def test_every_step_is_something_that_a_story_can_do() -> None:
    owners = (Actions, Faults, Bank, Copying, Incidents, TransactionIncidents)
    for seed in range(40):
        options = Options.draw(seed)
        for name in (*options.weights, *options.incidents):
            assert sum(hasattr(owner, name) for owner in owners) == 1
    options = Options.draw(7)
    steps = steps_of(7, options)
    assert all(options.weights[step.name] for step in steps[: options.steps])


def test_a_cluster_heals_before_each_incident() -> None:
    for seed in range(40):
        options = Options.draw(seed)
        names = [step.name for step in steps_of(seed, options)[options.steps :]]
        assert names == [name for incident in options.incidents for name in ("cluster_heals", incident)]
        assert names


def test_each_incident_happens_in_some_story() -> None:
    public = {name for owner in (Incidents, TransactionIncidents) for name in vars(owner) if not name.startswith("_")}
    drawn = {name for seed in range(200) for name in Options.draw(seed).incidents}
    assert drawn == public - {"cluster_heals"}
