"""How the broker finds and talks to ZooKeeper."""

TABLE = """
zookeeper.clientCnxnSocket                       string    -        -    medium  read-only
zookeeper.connect                                string    -        -    high    read-only
zookeeper.connection.timeout.ms                  int       -        -    high    read-only
zookeeper.max.in.flight.requests                 int       10       >=1  high    read-only
zookeeper.session.timeout.ms                     int       18000    -    high    read-only
zookeeper.set.acl                                boolean   false    -    high    read-only
zookeeper.ssl.cipher.suites                      list      -        -    low     read-only
zookeeper.ssl.client.enable                      boolean   false    -    medium  read-only
zookeeper.ssl.crl.enable                         boolean   false    -    low     read-only
zookeeper.ssl.enabled.protocols                  list      -        -    low     read-only
zookeeper.ssl.endpoint.identification.algorithm  string    HTTPS    -    low     read-only
zookeeper.ssl.keystore.location                  string    -        -    medium  read-only
zookeeper.ssl.keystore.password                  password  -        -    medium  read-only
zookeeper.ssl.keystore.type                      string    -        -    medium  read-only
zookeeper.ssl.ocsp.enable                        boolean   false    -    low     read-only
zookeeper.ssl.protocol                           string    TLSv1.2  -    low     read-only
zookeeper.ssl.truststore.location                string    -        -    medium  read-only
zookeeper.ssl.truststore.password                password  -        -    medium  read-only
zookeeper.ssl.truststore.type                    string    -        -    medium  read-only
"""
