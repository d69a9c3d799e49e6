"""Listeners, sockets, connections and the request queue."""

TABLE = """
advertised.listeners                       string  -           -    high    per-broker    obeyed
connection.failed.authentication.delay.ms  int     100         >=0  low     read-only     obeyed
connections.max.idle.ms                    long    600000      -    medium  read-only     obeyed
control.plane.listener.name                string  -           -    high    read-only     obeyed
inter.broker.listener.name                 string  -           -    medium  read-only     obeyed
listener.security.protocol.map  string
    SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  -  low  per-broker  obeyed
listeners                                  string  PLAINTEXT://:9092  -    high    per-broker    obeyed
max.connection.creation.rate               int     2147483647  >=0  medium  cluster-wide  obeyed
max.connections                            int     10000       >=0  medium  cluster-wide  obeyed
max.connections.per.ip                     int     1000        >=0  medium  cluster-wide  obeyed
max.connections.per.ip.overrides           string  ""          -    medium  cluster-wide  obeyed
num.network.threads                        int     3           >=1  high    cluster-wide  obeyed
queued.max.request.bytes                   long    268435456   -    medium  read-only     obeyed
queued.max.requests                        int     500         >=1  high    read-only     obeyed
security.inter.broker.protocol  string
    PLAINTEXT  PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL  medium  read-only  obeyed
socket.connection.setup.timeout.max.ms     long    30000       -    medium  read-only     obeyed
socket.connection.setup.timeout.ms         long    10000       -    medium  read-only     obeyed
socket.listen.backlog.size                 int     1024        >=1  medium  read-only     obeyed
socket.receive.buffer.bytes                int     1048576     -    high    read-only     obeyed
socket.request.max.bytes                   int     104857600   >=1  high    read-only     obeyed
socket.send.buffer.bytes                   int     409600      -    high    read-only     obeyed
"""
