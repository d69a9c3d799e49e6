"""Keys that Kafka doesn't have. They all start with `odradek.`, so that they can never be taken for Kafka's."""

TABLE = """
odradek.audit.dir           string   -          -          low     read-only  obeyed
odradek.audit.max.bytes     long     67108864   >=65536    low     read-only  obeyed
odradek.failed.authentication.rate.per.ip  int  100  >=1  low  read-only  obeyed
odradek.metrics.host        string   127.0.0.1  -          low     read-only  obeyed
odradek.metrics.keystore.location  string  -  -  low  read-only  obeyed
odradek.metrics.login       password -          -          low     read-only  obeyed
odradek.metrics.port        int      -1         -1..65535  low     read-only  obeyed
odradek.recorder.enable     boolean  true       -          low     read-only  obeyed
odradek.recorder.dir        string   -          -          low     read-only  obeyed
odradek.recorder.max.bytes  long     67108864   >=65536    low     read-only  obeyed
odradek.transaction.version  int     1          1..2       low     read-only  obeyed
odradek.ssl.crl.location    string   -          -          low     read-only  obeyed
odradek.zookeeper.digest    password -          -          low     read-only  obeyed
"""
