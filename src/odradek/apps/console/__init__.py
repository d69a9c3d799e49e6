"""The web console: a separate process that shows a cluster and changes it on request of its users.

`readings` asks the cluster, `feeds` keeps asking while somebody looks, `views` makes rows and HTML of it (pure),
`screens` shows them with NiceGUI, `guard` stands before all of it.
"""
