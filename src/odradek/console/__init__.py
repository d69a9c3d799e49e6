"""The web console: a process of its own that shows a cluster and changes it on request; it decides nothing.

`readings` asks the cluster, `feeds` keeps asking while somebody looks, `views` turns readings into rows (pure), `screens`
shows them with NiceGUI, `guard` stands before all of it.
"""
