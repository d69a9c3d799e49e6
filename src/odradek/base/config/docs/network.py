"""Documentation of listeners, sockets and connections."""

TEXT = """
advertised.listeners
    The addresses that clients and other brokers connect to. Where it isn't set they are those of
    listeners. Needed when the outside sees other names or ports, as behind NAT or in containers.
connection.failed.authentication.delay.ms
    How long the answer to a failed login is held back, so that guessing is slow.
connections.max.idle.ms
    A connection that was silent for this long is closed; a negative value keeps it.
control.plane.listener.name
    The listener that carries the controller's requests alone. Without one they share the others.
inter.broker.listener.name
    The listener by which brokers reach each other. Can't be combined with security.inter.broker.protocol.
listener.security.protocol.map
    Which security protocol each listener name stands for, as NAME:PROTOCOL pairs. Names can be chosen freely, so that
    two listeners may share a protocol and differ in their settings.
listeners
    Where the broker listens, as NAME://host:port, separated by commas. An empty host or 0.0.0.0 is every interface;
    port 0 is any free one. Two may share a port only if one is on an IPv4 and the other on an IPv6 address.
max.connection.creation.rate
    The most new connections each second. Connections beyond that wait to be accepted.
max.connections
    The most connections at a time. At the limit new ones wait until old ones go.
max.connections.per.ip
    The most connections from one address. More are closed at once.
max.connections.per.ip.overrides
    Other limits for certain addresses or host names, as host:count pairs.
num.network.threads
    Processors for each listener: threads that read requests, serve what can't block, and write answers. Connections
    with small requests share the first; the others have those with large requests or answers.
queued.max.request.bytes
    The most bytes of requests that may be in memory at once. Beyond that no socket is read until some are served.
    Without a setting it grows with socket.request.max.bytes; 0 or less is unlimited.
queued.max.requests
    The most requests that wait for a handler thread. Beyond that no socket is read.
security.inter.broker.protocol
    The protocol by which brokers talk to each other, where inter.broker.listener.name isn't set.
socket.connection.setup.timeout.max.ms
    The longest wait for an outgoing connection, which doubles from the first attempt on up to this.
socket.connection.setup.timeout.ms
    How long the first attempt at an outgoing connection may take.
socket.listen.backlog.size
    How many connections the kernel keeps waiting before they are accepted. Linux caps it at somaxconn.
socket.receive.buffer.bytes
    SO_RCVBUF of the broker's sockets; -1 leaves it to the kernel.
socket.request.max.bytes
    The largest request that is read. A client that announces a larger one loses its connection.
socket.send.buffer.bytes
    SO_SNDBUF of the broker's sockets; -1 leaves it to the kernel.
"""
