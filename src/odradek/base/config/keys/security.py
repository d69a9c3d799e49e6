"""TLS, SASL, delegation tokens, principals and authorization."""

TABLE = """
authorizer.class.name                                string    ""         -       low     read-only   refused:authorizer
connections.max.reauth.ms                            long      0          -       medium  read-only   refused:sasl
delegation.token.expiry.check.interval.ms            long      3600000    >=1     low     read-only   refused:tokens
delegation.token.expiry.time.ms                      long      86400000   >=1     medium  read-only   refused:tokens
delegation.token.master.key                          password  -          -       medium  read-only   refused:tokens
delegation.token.max.lifetime.ms                     long      604800000  >=1     medium  read-only   refused:tokens
delegation.token.secret.key                          password  -          -       medium  read-only   refused:tokens
password.encoder.cipher.algorithm  string
    AES/CBC/PKCS5Padding  -  low  read-only  refused:passwords
password.encoder.iterations                          int       4096       >=1024  low     read-only   refused:passwords
password.encoder.key.length                          int       128        >=8     low     read-only   refused:passwords
password.encoder.keyfactory.algorithm                string    -          -       low     read-only   refused:passwords
password.encoder.old.secret                          password  -          -       medium  read-only   refused:passwords
password.encoder.secret                              password  -          -       medium  read-only   refused:passwords
principal.builder.class  class
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    -  medium  per-broker  refused:java-class
sasl.client.callback.handler.class                   class     -          -       medium  read-only   refused:sasl
sasl.enabled.mechanisms                              list      GSSAPI     -       medium  per-broker  refused:sasl
sasl.jaas.config                                     password  -          -       medium  per-broker  refused:sasl
sasl.kerberos.kinit.cmd                              string    /usr/bin/kinit  -       medium  per-broker  refused:sasl
sasl.kerberos.min.time.before.relogin                long      60000      -       medium  per-broker  refused:sasl
sasl.kerberos.principal.to.local.rules               list      DEFAULT    -       medium  per-broker  refused:sasl
sasl.kerberos.service.name                           string    -          -       medium  per-broker  refused:sasl
sasl.kerberos.ticket.renew.jitter                    double    0.05       -       medium  per-broker  refused:sasl
sasl.kerberos.ticket.renew.window.factor             double    0.8        -       medium  per-broker  refused:sasl
sasl.login.callback.handler.class                    class     -          -       medium  read-only   refused:sasl
sasl.login.class                                     class     -          -       medium  read-only   refused:sasl
sasl.login.connect.timeout.ms                        int       -          -       low     read-only   refused:sasl
sasl.login.read.timeout.ms                           int       -          -       low     read-only   refused:sasl
sasl.login.refresh.buffer.seconds                    short     300        -       medium  per-broker  refused:sasl
sasl.login.refresh.min.period.seconds                short     60         -       medium  per-broker  refused:sasl
sasl.login.refresh.window.factor                     double    0.8        -       medium  per-broker  refused:sasl
sasl.login.refresh.window.jitter                     double    0.05       -       medium  per-broker  refused:sasl
sasl.login.retry.backoff.max.ms                      long      10000      -       low     read-only   refused:sasl
sasl.login.retry.backoff.ms                          long      100        -       low     read-only   refused:sasl
sasl.mechanism.inter.broker.protocol                 string    GSSAPI     -       medium  per-broker  refused:sasl
sasl.oauthbearer.clock.skew.seconds                  int       30         -       low     read-only   refused:sasl
sasl.oauthbearer.expected.audience                   list      -          -       low     read-only   refused:sasl
sasl.oauthbearer.expected.issuer                     string    -          -       low     read-only   refused:sasl
sasl.oauthbearer.jwks.endpoint.refresh.ms            long      3600000    -       low     read-only   refused:sasl
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long      10000      -       low     read-only   refused:sasl
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long      100        -       low     read-only   refused:sasl
sasl.oauthbearer.jwks.endpoint.url                   string    -          -       medium  read-only   refused:sasl
sasl.oauthbearer.scope.claim.name                    string    scope      -       low     read-only   refused:sasl
sasl.oauthbearer.sub.claim.name                      string    sub        -       low     read-only   refused:sasl
sasl.oauthbearer.token.endpoint.url                  string    -          -       medium  read-only   refused:sasl
sasl.server.callback.handler.class                   class     -          -       medium  read-only   refused:sasl
sasl.server.max.receive.size                         int       524288     -       medium  read-only   refused:sasl
security.providers                                   string    -          -       low     read-only   refused:java-class
ssl.allow.dn.changes                                 boolean   false      -       low     read-only   refused:tls
ssl.allow.san.changes                                boolean   false      -       low     read-only   refused:tls
ssl.cipher.suites                                    list      ""         -       medium  per-broker  refused:tls
ssl.client.auth  string
    none  required|requested|none  medium  per-broker  refused:tls
ssl.enabled.protocols                                list      TLSv1.2,TLSv1.3  -       medium  per-broker  refused:tls
ssl.endpoint.identification.algorithm                string    https      -       low     per-broker  refused:tls
ssl.engine.factory.class                             class     -          -       low     per-broker  refused:tls
ssl.key.password                                     password  -          -       medium  per-broker  refused:tls
ssl.keymanager.algorithm                             string    SunX509    -       medium  per-broker  refused:tls
ssl.keystore.certificate.chain                       password  -          -       medium  per-broker  refused:tls
ssl.keystore.key                                     password  -          -       medium  per-broker  refused:tls
ssl.keystore.location                                string    -          -       medium  per-broker  refused:tls
ssl.keystore.password                                password  -          -       medium  per-broker  refused:tls
ssl.keystore.type                                    string    JKS        -       medium  per-broker  refused:tls
ssl.principal.mapping.rules                          string    DEFAULT    -       low     read-only   refused:tls
ssl.protocol                                         string    TLSv1.3    -       medium  per-broker  refused:tls
ssl.provider                                         string    -          -       medium  per-broker  refused:tls
ssl.secure.random.implementation                     string    -          -       low     per-broker  refused:tls
ssl.trustmanager.algorithm                           string    PKIX       -       medium  per-broker  refused:tls
ssl.truststore.certificates                          password  -          -       medium  per-broker  refused:tls
ssl.truststore.location                              string    -          -       medium  per-broker  refused:tls
ssl.truststore.password                              password  -          -       medium  per-broker  refused:tls
ssl.truststore.type                                  string    JKS        -       medium  per-broker  refused:tls
"""
