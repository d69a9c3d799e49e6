"""The laboratory of rebalances: the same joins, leaves and crashes through the three designs of consumer groups.

    odradek lab rebalance --members 3,10,30 --designs one,two,three

`recorded_events` keeps the events of members and computes figures from them, `joined` is a member of design three,
`group_members` makes the members of any design, `experiment` leads them through the phases, `report` draws.
Members run in this process, each with a session or connection of its own, so that one clock sees them all.
"""
