"""Seeds that find planted bugs, of the bugs that are found soon; the others are left to `make soak`.

They hold for the stories of the day: see `mutant_table`.
"""

DETECTING_SEEDS: dict[str, tuple[int, ...]] = {
    "a transaction coordinator that takes over begins with nothing": (3,),
    "a transaction coordinator that takes over leaves decided ends half done": (3,),
    "the end of a transaction is answered when the coordinator alone has it": (22,),
    "a fenced producer may go on": (17,),
    "the last stable offset is the high watermark": (3,),
    "a marker that is refused or lost is not sent again": (14,),
    "aborted transactions are not told to readers of committed records": (3,),
    "offsets that a transaction commits count before its end": (10,),
    "offsets of an aborted transaction count": (10,),
    "KIP-447: a member of a former generation commits offsets in a transaction": (10,),
    "version 2: the epoch stays when a transaction ends": (8,),
    "KAFKA-14884: verified, then appended behind the marker": (11,),
    "KAFKA-7519: a move that can't be written stays pending": (10,),
    "KAFKA-19999: a marker that is written already is refused": (14,),
    "franz-go 1348: the list of aborted transactions is out of order": (11,),
    "KAFKA-12153: producer state keeps what was truncated": (2,),
    "KIP-320: a fetch in another epoch is answered": (17,),
    "KIP-380: requests to a former registration of a broker are obeyed": (7,),
    "KAFKA-13790: a directive of the present leader epoch is obeyed again": (11,),
    "zombie controllers: requests of a controller that was replaced are obeyed": (9,),
    "KIP-207: a new leader tells an end before it knows it": (2,),
    "a member of a former generation commits": (26,),
    "KIP-101: roles change, logs are cut at the high watermark": (0,),
    "acknowledged before it is replicated": (0,),
    "the high watermark is the end of the leader's log": (0,),
    "a batch that is sent again is written again": (0,),
    "a producer without state may begin at any sequence": (0,),
    "a batch behind a refused one is out of order": (6,),
    "a gap gets no benefit of the doubt after leadership moved": (6,),
    "the ISR is joined by whoever fetches, with an empty log too": (0,),
    "KIP-497: only the confirmed ISR is waited for": (10,),
    "KIP-497: a change of the ISR is not fenced by the partition's epoch": (0,),
    "a new leader has the epoch of the old one": (0,),
    "anybody alive is elected": (14,),
    "KAFKA-7164: a follower goes on where it is, whatever the leader has": (0,),
    "KIP-279: a follower cuts where the leader's epoch ends, not where its own does": (0,),
    "KIP-279: a leader answers for the epoch it was asked for, known or not": (0,),
    "what a controller said before is obeyed after what it said since": (17,),
    "a leader that resigned still acknowledges": (0,),
    "the high watermark of a new leader is the end of its log": (0,),
    "offsets are acknowledged when the coordinator alone has them": (1,),
    "a coordinator that takes over begins with nothing": (22,),
    "KIP-380, KIP-570, KAFKA-13790, zombie controllers: whatever anybody says is obeyed": (0,),
    "KIP-966: the high watermark advances below min.insync.replicas": (10,),
    "KAFKA-3919: a torn tail stays in the log after a power failure": (2,),
    "a topic is deleted without waiting for the brokers that are away": (0,),
}

NOT_FOUND = frozenset(
    {
        "an answer to a former registration of a broker ends the deletion that was begun for the present one",
        "KAFKA-15449: offsets in a transaction are not verified",
        "KAFKA-14055: compaction drops markers of transactions with records",
        "KAFKA-9235: coordinators keep their state after StopReplica",
    }
)
"""Planted bugs that no story of today has found yet; docs/simulation.md tells how many were tried."""
