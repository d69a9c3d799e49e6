"""One module for each screen: what it follows, what it shows, what can be changed there."""

from odradek.console.screens import cluster, groups, messages, topic, topics

SCREENS = (cluster.register, topics.register, topic.register, messages.register, groups.register)
