"""Documentation of the keys that Kafka doesn't have."""

TEXT = """
odradek.audit.dir
    The directory of the audit log, which has every change and every refusal as JSON lines. Without it, the first of
    log.dirs if there is an authorizer, else no audit log.
odradek.audit.max.bytes
    How large the audit log may become: its oldest entries go first.
odradek.failed.authentication.rate.per.ip
    How many logins from one address may fail in a second; a connection that ends without a login is one. Beyond that,
    new connections from there are held until the second is over, and closed; twice as long each time that it goes on,
    up to ten seconds. The listener between brokers is exempt where it is one of several.
odradek.metrics.host
    The address on which figures are served to Prometheus, at /metrics.
odradek.metrics.keystore.location
    A PEM file with private key and certificates: the endpoint is https then. A changed file is used at once.
odradek.metrics.login
    USER:PASSWORD that scrapers have to send (HTTP basic authentication). Beyond this machine it needs the key store.
odradek.metrics.port
    The port of that endpoint: -1 leaves it closed, 0 takes any free one.
odradek.recorder.enable
    Whether the broker keeps a journal of what its controller sees and does, of its session and of its ISR changes.
odradek.recorder.dir
    Where that journal lies: a directory, or several of which the first that can be written is used, and the next one
    when that fails. Without it, log.dirs. Several brokers may share a directory.
odradek.recorder.max.bytes
    How large the journal may become: its oldest files go first.
odradek.transaction.version
    The version of transactions that clients are offered, as the finalized feature transaction.version. With 2 (KIP-890,
    part 2) each end of a transaction raises the producer's epoch, so that a request that comes late can't become part
    of, or end, a later transaction; producers that know it (Java 4.0, franz-go 1.19) use it, all others go on as
    before. Leave it at 1 while there are Apache Kafka 3.9 brokers in the cluster, which can't take part in it.
odradek.ssl.crl.location
    A PEM file with revocation lists. Certificates of clients, and of other brokers, are refused where their authority's
    list has them, and where there is no current list of their authority.
odradek.zookeeper.digest
    USER:PASSWORD by which ZooKeeper knows the broker, in its scheme digest. With zookeeper.set.acl its nodes belong to
    that user; all brokers need the same.
"""
