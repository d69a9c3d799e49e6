"""Keys of the connection to ZooKeeper."""

TABLE = """
zookeeper.clientCnxnSocket                       string    -        -    medium  read-only  refused:zk-tls
zookeeper.connect                                string    -        -    high    read-only  obeyed
zookeeper.connection.timeout.ms                  int       -        -    high    read-only  obeyed
zookeeper.max.in.flight.requests                 int       500       >=1  high    read-only  obeyed
zookeeper.session.timeout.ms                     int       18000    -    high    read-only  obeyed
zookeeper.set.acl                                boolean   false    -    high    read-only  refused:zk-acl
zookeeper.ssl.cipher.suites                      list      -        -    low     read-only  refused:zk-tls
zookeeper.ssl.client.enable                      boolean   false    -    medium  read-only  refused:zk-tls
zookeeper.ssl.crl.enable                         boolean   false    -    low     read-only  refused:zk-tls
zookeeper.ssl.enabled.protocols                  list      -        -    low     read-only  refused:zk-tls
zookeeper.ssl.endpoint.identification.algorithm  string    HTTPS    -    low     read-only  refused:zk-tls
zookeeper.ssl.keystore.location                  string    -        -    medium  read-only  refused:zk-tls
zookeeper.ssl.keystore.password                  password  -        -    medium  read-only  refused:zk-tls
zookeeper.ssl.keystore.type                      string    -        -    medium  read-only  refused:zk-tls
zookeeper.ssl.ocsp.enable                        boolean   false    -    low     read-only  refused:zk-tls
zookeeper.ssl.protocol                           string    TLSv1.2  -    low     read-only  refused:zk-tls
zookeeper.ssl.truststore.location                string    -        -    medium  read-only  refused:zk-tls
zookeeper.ssl.truststore.password                password  -        -    medium  read-only  refused:zk-tls
zookeeper.ssl.truststore.type                    string    -        -    medium  read-only  refused:zk-tls
"""
