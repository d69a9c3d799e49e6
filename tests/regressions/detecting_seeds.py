"""Seeds that find planted bugs, of the bugs that are found soon; the others are left to `make soak`.

They hold for the stories of the day: see `mutant_table`.
"""

DETECTING_SEEDS: dict[str, tuple[int, ...]] = {
    "a transaction coordinator that takes over begins with nothing": (5, 7, 19),
    "the last stable offset is the high watermark": (5, 10, 19),
    "aborted transactions are not told to readers of committed records": (5, 6, 7),
    "KIP-101: roles change, logs are cut at the high watermark": (0, 2, 4),
    "acknowledged before it is replicated": (0, 1, 2),
    "the high watermark is the end of the leader's log": (0, 1, 2),
    "a batch that is sent again is written again": (0, 1, 2),
    "a producer without state may begin at any sequence": (0, 3, 4),
    "a batch behind a refused one is out of order": (0, 9, 16),
    "the ISR is joined by whoever fetches, with an empty log too": (6, 14, 20),
    "KIP-497: a change of the ISR is not fenced by the partition's epoch": (0, 3, 17),
    "a new leader has the epoch of the old one": (1, 2, 3),
    "KAFKA-7164: a follower goes on where it is, whatever the leader has": (0, 3, 7),
    "KIP-279: a follower cuts where the leader's epoch ends, not where its own does": (0, 1, 3),
    "KIP-279: a leader answers for the epoch it was asked for, known or not": (0, 3, 12),
    "KIP-380, KIP-570, KAFKA-13790, zombie controllers: whatever anybody says is obeyed": (0, 1, 6),
    "what a controller said before is obeyed after what it said since": (17, 18, 19),
    "the high watermark of a new leader is the end of its log": (0, 3, 4),
    "offsets are acknowledged when the coordinator alone has them": (1, 2, 4),
    "a coordinator that takes over begins with nothing": (6, 16, 19),
    "a topic is deleted without waiting for the brokers that are away": (0, 1, 4),
}
