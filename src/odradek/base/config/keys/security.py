"""TLS, SASL, delegation tokens, principals and authorization."""

TABLE = """
authorizer.class.name                                string    ""                   -             low     read-only
connections.max.reauth.ms                            long      0                    -             medium  read-only
delegation.token.expiry.check.interval.ms            long      3600000              >=1           low     read-only
delegation.token.expiry.time.ms                      long      86400000             >=1           medium  read-only
delegation.token.master.key                          password  -                    -             medium  read-only
delegation.token.max.lifetime.ms                     long      604800000            >=1           medium  read-only
delegation.token.secret.key                          password  -                    -             medium  read-only
password.encoder.cipher.algorithm                    string    AES/CBC/PKCS5Padding  -             low     read-only
password.encoder.iterations                          int       4096                 >=1024        low     read-only
password.encoder.key.length                          int       128                  >=8           low     read-only
password.encoder.keyfactory.algorithm                string    -                    -             low     read-only
password.encoder.old.secret                          password  -                    -             medium  read-only
password.encoder.secret                              password  -                    -             medium  read-only
principal.builder.class  class
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  -  medium  per-broker
sasl.client.callback.handler.class                   class     -                    -             medium  read-only
sasl.enabled.mechanisms                              list      GSSAPI               -             medium  per-broker
sasl.jaas.config                                     password  -                    -             medium  per-broker
sasl.kerberos.kinit.cmd                              string    /usr/bin/kinit       -             medium  per-broker
sasl.kerberos.min.time.before.relogin                long      60000                -             medium  per-broker
sasl.kerberos.principal.to.local.rules               list      DEFAULT              -             medium  per-broker
sasl.kerberos.service.name                           string    -                    -             medium  per-broker
sasl.kerberos.ticket.renew.jitter                    double    0.05                 -             medium  per-broker
sasl.kerberos.ticket.renew.window.factor             double    0.8                  -             medium  per-broker
sasl.login.callback.handler.class                    class     -                    -             medium  read-only
sasl.login.class                                     class     -                    -             medium  read-only
sasl.login.connect.timeout.ms                        int       -                    -             low     read-only
sasl.login.read.timeout.ms                           int       -                    -             low     read-only
sasl.login.refresh.buffer.seconds                    short     300                  -             medium  per-broker
sasl.login.refresh.min.period.seconds                short     60                   -             medium  per-broker
sasl.login.refresh.window.factor                     double    0.8                  -             medium  per-broker
sasl.login.refresh.window.jitter                     double    0.05                 -             medium  per-broker
sasl.login.retry.backoff.max.ms                      long      10000                -             low     read-only
sasl.login.retry.backoff.ms                          long      100                  -             low     read-only
sasl.mechanism.inter.broker.protocol                 string    GSSAPI               -             medium  per-broker
sasl.oauthbearer.clock.skew.seconds                  int       30                   -             low     read-only
sasl.oauthbearer.expected.audience                   list      -                    -             low     read-only
sasl.oauthbearer.expected.issuer                     string    -                    -             low     read-only
sasl.oauthbearer.jwks.endpoint.refresh.ms            long      3600000              -             low     read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long      10000                -             low     read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long      100                  -             low     read-only
sasl.oauthbearer.jwks.endpoint.url                   string    -                    -             medium  read-only
sasl.oauthbearer.scope.claim.name                    string    scope                -             low     read-only
sasl.oauthbearer.sub.claim.name                      string    sub                  -             low     read-only
sasl.oauthbearer.token.endpoint.url                  string    -                    -             medium  read-only
sasl.server.callback.handler.class                   class     -                    -             medium  read-only
sasl.server.max.receive.size                         int       524288               -             medium  read-only
security.providers                                   string    -                    -             low     read-only
ssl.allow.dn.changes                                 boolean   false                -             low     read-only
ssl.allow.san.changes                                boolean   false                -             low     read-only
ssl.cipher.suites                                    list      ""                   -             medium  per-broker
ssl.client.auth  string
    none  required|requested|none  medium  per-broker
ssl.enabled.protocols                                list      TLSv1.2,TLSv1.3      -             medium  per-broker
ssl.endpoint.identification.algorithm                string    https                -             low     per-broker
ssl.engine.factory.class                             class     -                    -             low     per-broker
ssl.key.password                                     password  -                    -             medium  per-broker
ssl.keymanager.algorithm                             string    SunX509              -             medium  per-broker
ssl.keystore.certificate.chain                       password  -                    -             medium  per-broker
ssl.keystore.key                                     password  -                    -             medium  per-broker
ssl.keystore.location                                string    -                    -             medium  per-broker
ssl.keystore.password                                password  -                    -             medium  per-broker
ssl.keystore.type                                    string    JKS                  -             medium  per-broker
ssl.principal.mapping.rules                          string    DEFAULT              -             low     read-only
ssl.protocol                                         string    TLSv1.3              -             medium  per-broker
ssl.provider                                         string    -                    -             medium  per-broker
ssl.secure.random.implementation                     string    -                    -             low     per-broker
ssl.trustmanager.algorithm                           string    PKIX                 -             medium  per-broker
ssl.truststore.certificates                          password  -                    -             medium  per-broker
ssl.truststore.location                              string    -                    -             medium  per-broker
ssl.truststore.password                              password  -                    -             medium  per-broker
ssl.truststore.type                                  string    JKS                  -             medium  per-broker
"""
