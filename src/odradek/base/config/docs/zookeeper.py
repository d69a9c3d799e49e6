"""Documentation of the connection to ZooKeeper."""

TEXT = """
zookeeper.clientCnxnSocket
    The Java client's socket class, which Kafka needs for TLS; here its name is accepted and TLS doesn't need it.
zookeeper.connect
    The ensemble, as host:port pairs separated by commas. A path at the end puts the whole cluster below that node.
zookeeper.connection.timeout.ms
    How long the broker waits for its first connection. Where it isn't set it is zookeeper.session.timeout.ms.
zookeeper.max.in.flight.requests
    How many requests of one thread may be on their way to ZooKeeper before the next one waits.
zookeeper.session.timeout.ms
    After this long without contact ZooKeeper ends the session, and the broker counts as gone.
zookeeper.set.acl
    Whether nodes are created so that only brokers may change them, and only they read passwords and tokens. ZooKeeper
    has to know the brokers: by their certificates, or by odradek.zookeeper.digest.
zookeeper.ssl.cipher.suites
    The cipher suites that may be used towards ZooKeeper.
zookeeper.ssl.client.enable
    Whether the connection to ZooKeeper is TLS.
zookeeper.ssl.crl.enable
    Whether revocation lists are consulted for ZooKeeper's certificate.
zookeeper.ssl.enabled.protocols
    The TLS versions that may be negotiated with ZooKeeper; by default the one of zookeeper.ssl.protocol.
zookeeper.ssl.endpoint.identification.algorithm
    HTTPS checks that the certificate is for the host that was dialled; an empty value skips the check.
zookeeper.ssl.keystore.location
    The file with the certificate and key that this broker shows to ZooKeeper.
zookeeper.ssl.keystore.password
    What opens that file. The key in it must have the same password.
zookeeper.ssl.keystore.type
    The format of that file: JKS, PKCS12 or PEM. Without it, the extension of the file name decides.
zookeeper.ssl.ocsp.enable
    Whether ZooKeeper's certificate is checked online for revocation.
zookeeper.ssl.protocol
    The TLS version that negotiation with ZooKeeper begins with.
zookeeper.ssl.truststore.location
    The file with the authorities that ZooKeeper's certificate must come from.
zookeeper.ssl.truststore.password
    What opens that file.
zookeeper.ssl.truststore.type
    The format of that file: JKS, PKCS12 or PEM. Without it, the extension of the file name decides.
"""
