"""Configuration: what server.properties and topic overrides may say, and what they come to.

`BrokerConfig.from_properties` is the door for the broker, `topic_config.effective` the door for topics. Every key is
declared once, in the tables of `keys/`.
"""
