"""Seeds that find planted bugs, of the bugs that are found soon; the others are left to `make soak`.

They hold for the stories of the day: see `mutant_table`.
"""

DETECTING_SEEDS: dict[str, tuple[int, ...]] = {
    "a transaction coordinator that takes over begins with nothing": (1, 100015, 200004),
    "the last stable offset is the high watermark": (6, 100008, 200004),
    "aborted transactions are not told to readers of committed records": (1, 100008, 200000),
    "KIP-101: roles change, logs are cut at the high watermark": (0, 100000, 200000),
    "acknowledged before it is replicated": (0, 100000, 200000),
    "the high watermark is the end of the leader's log": (0, 100000, 200000),
    "a batch that is sent again is written again": (0, 100001, 200000),
    "a producer without state may begin at any sequence": (0, 100000, 200000),
    "a batch behind a refused one is out of order": (0, 100001, 200002),
    "the ISR is joined by whoever fetches, with an empty log too": (0, 100003, 200008),
    "KIP-497: a change of the ISR is not fenced by the partition's epoch": (0, 100002, 200000),
    "a new leader has the epoch of the old one": (1, 100000, 200000),
    "KAFKA-7164: a follower goes on where it is, whatever the leader has": (3, 100003, 200012),
    "KIP-279: a follower cuts where the leader's epoch ends, not where its own does": (1, 100000, 200005),
    "KIP-279: a leader answers for the epoch it was asked for, known or not": (3, 100003, 200012),
    "KIP-380, KIP-570, KAFKA-13790, zombie controllers: whatever anybody says is obeyed": (2, 100005, 200001),
    "what a controller said before is obeyed after what it said since": (4, 100005, 200004),
    "the high watermark of a new leader is the end of its log": (0, 100000, 200000),
    "offsets are acknowledged when the coordinator alone has them": (1, 100000, 200000),
    "a coordinator that takes over begins with nothing": (4, 100002, 200004),
    "a topic is deleted without waiting for the brokers that are away": (0, 100004, 200008),
    "a gap gets no benefit of the doubt after leadership moved": (12, 100034, 200002),
    "KIP-497: only the confirmed ISR is waited for": (21, 100014, 200016),
    "KIP-447: a member of a former generation commits offsets in a transaction": (1,),
    "KIP-966: the high watermark advances below min.insync.replicas": (2,),
    "KAFKA-3919: a torn tail stays in the log after a power failure": (2,),
}
