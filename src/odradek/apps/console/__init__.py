"""The web console: a separate process that shows a cluster and changes it on request of its users.

`readings` reads the cluster, `feeds` repeats readings while a page is open, `views` makes rows and HTML (pure),
`screens` shows them with NiceGUI, `guard` checks access first.
"""
