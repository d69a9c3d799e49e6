"""Configuration: keys, valid values and defaults of server.properties and of topic configs.

`BrokerConfig.from_properties` makes the configuration of a broker, `topic_config.effective` that of a topic. Every
key is
declared once, in the tables of `keys/`.
"""
