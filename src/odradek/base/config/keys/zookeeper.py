"""Keys of the connection to ZooKeeper."""

TABLE = """
zookeeper.clientCnxnSocket                       string    -        -    medium  read-only  obeyed
zookeeper.connect                                string    -        -    high    read-only  obeyed
zookeeper.connection.timeout.ms                  int       -        -    high    read-only  obeyed
zookeeper.max.in.flight.requests                 int       500       >=1  high    read-only  obeyed
zookeeper.session.timeout.ms                     int       18000    -    high    read-only  obeyed
zookeeper.set.acl                                boolean   false    -    high    read-only  obeyed
zookeeper.ssl.cipher.suites                      list      -        -    low     read-only  obeyed
zookeeper.ssl.client.enable                      boolean   false    -    medium  read-only  obeyed
zookeeper.ssl.crl.enable                         boolean   false    -    low     read-only  refused:zk-revocation
zookeeper.ssl.enabled.protocols                  list      -        -    low     read-only  obeyed
zookeeper.ssl.endpoint.identification.algorithm  string    HTTPS    -    low     read-only  obeyed
zookeeper.ssl.keystore.location                  string    -        -    medium  read-only  obeyed
zookeeper.ssl.keystore.password                  password  -        -    medium  read-only  obeyed
zookeeper.ssl.keystore.type                      string    -        -    medium  read-only  obeyed
zookeeper.ssl.ocsp.enable                        boolean   false    -    low     read-only  refused:zk-revocation
zookeeper.ssl.protocol                           string    TLSv1.2  -    low     read-only  obeyed
zookeeper.ssl.truststore.location                string    -        -    medium  read-only  obeyed
zookeeper.ssl.truststore.password                password  -        -    medium  read-only  obeyed
zookeeper.ssl.truststore.type                    string    -        -    medium  read-only  obeyed
"""
