"""The web console: a process of its own that shows a cluster and changes it on request; it decides nothing.

`readings` asks the cluster, `feeds` keeps asking while somebody looks, `views` makes rows and HTML of it (pure),
`screens` shows them with NiceGUI, `guard` stands before all of it.
"""
