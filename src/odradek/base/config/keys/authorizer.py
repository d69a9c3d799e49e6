"""Keys of Kafka's AclAuthorizer, which a broker doesn't list among its own."""

TABLE = """
super.users                            string   ""     -  low  read-only  obeyed
allow.everyone.if.no.acl.found         boolean  false  -  low  read-only  obeyed
authorizer.zookeeper.url               string   -      -  low  read-only  refused:authorizer
authorizer.zookeeper.connection.timeout.ms    int      -      -  low  read-only  refused:authorizer
authorizer.zookeeper.session.timeout.ms       int      -      -  low  read-only  refused:authorizer
authorizer.zookeeper.max.in.flight.requests   int      -      -  low  read-only  refused:authorizer
"""
