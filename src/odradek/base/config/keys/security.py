"""TLS, SASL, delegation tokens, principals and authorization."""

TABLE = """
authorizer.class.name                                string    ""         -       low     read-only   obeyed
connections.max.reauth.ms                            long      0          -       medium  read-only   obeyed
delegation.token.expiry.check.interval.ms            long      3600000    >=1     low     read-only   obeyed
delegation.token.expiry.time.ms                      long      86400000   >=1     medium  read-only   obeyed
delegation.token.master.key                          password  -          -       medium  read-only   obeyed
delegation.token.max.lifetime.ms                     long      604800000  >=1     medium  read-only   obeyed
delegation.token.secret.key                          password  -          -       medium  read-only   obeyed
password.encoder.cipher.algorithm  string
    AES/CBC/PKCS5Padding  -  low  read-only  obeyed
password.encoder.iterations                          int       4096       >=1024  low     read-only   obeyed
password.encoder.key.length                          int       128        >=8     low     read-only   obeyed
password.encoder.keyfactory.algorithm                string    -          -       low     read-only   obeyed
password.encoder.old.secret                          password  -          -       medium  read-only   obeyed
password.encoder.secret                              password  -          -       medium  read-only   obeyed
principal.builder.class  class
    org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
    -  medium  per-broker  refused:java-class
sasl.client.callback.handler.class                   class     -          -       medium  read-only   refused:java-class
sasl.enabled.mechanisms                              list      GSSAPI     -       medium  per-broker  obeyed
sasl.jaas.config                                     password  -          -       medium  per-broker  obeyed
sasl.kerberos.kinit.cmd  string
    /usr/bin/kinit  -  medium  per-broker  no-effect:kerberos
sasl.kerberos.min.time.before.relogin                long      60000      -       medium  per-broker  no-effect:kerberos
sasl.kerberos.principal.to.local.rules               list      DEFAULT    -       medium  per-broker  obeyed
sasl.kerberos.service.name                           string    -          -       medium  per-broker  obeyed
sasl.kerberos.ticket.renew.jitter                    double    0.05       -       medium  per-broker  no-effect:kerberos
sasl.kerberos.ticket.renew.window.factor             double    0.8        -       medium  per-broker  no-effect:kerberos
sasl.login.callback.handler.class                    class     -          -       medium  read-only   obeyed
sasl.login.class                                     class     -          -       medium  read-only   refused:java-class
sasl.login.connect.timeout.ms                        int       -          -       low     read-only   obeyed
sasl.login.read.timeout.ms                           int       -          -       low     read-only   obeyed
sasl.login.refresh.buffer.seconds                    short     300        -       medium  per-broker  obeyed
sasl.login.refresh.min.period.seconds                short     60         -       medium  per-broker  obeyed
sasl.login.refresh.window.factor                     double    0.8        -       medium  per-broker  obeyed
sasl.login.refresh.window.jitter                     double    0.05       -       medium  per-broker  obeyed
sasl.login.retry.backoff.max.ms                      long      10000      -       low     read-only   obeyed
sasl.login.retry.backoff.ms                          long      100        -       low     read-only   obeyed
sasl.mechanism.inter.broker.protocol                 string    GSSAPI     -       medium  per-broker  obeyed
sasl.oauthbearer.clock.skew.seconds                  int       30         -       low     read-only   obeyed
sasl.oauthbearer.expected.audience                   list      -          -       low     read-only   obeyed
sasl.oauthbearer.expected.issuer                     string    -          -       low     read-only   obeyed
sasl.oauthbearer.jwks.endpoint.refresh.ms            long      3600000    -       low     read-only   obeyed
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  long      10000      -       low     read-only   obeyed
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms      long      100        -       low     read-only   obeyed
sasl.oauthbearer.jwks.endpoint.url                   string    -          -       medium  read-only   obeyed
sasl.oauthbearer.scope.claim.name                    string    scope      -       low     read-only   obeyed
sasl.oauthbearer.sub.claim.name                      string    sub        -       low     read-only   obeyed
sasl.oauthbearer.token.endpoint.url                  string    -          -       medium  read-only   obeyed
sasl.server.callback.handler.class                   class     -          -       medium  read-only   obeyed
sasl.server.max.receive.size                         int       524288     -       medium  read-only   obeyed
security.providers                                   string    -          -       low     read-only   refused:java-class
ssl.allow.dn.changes                                 boolean   false      -       low     read-only   obeyed
ssl.allow.san.changes                                boolean   false      -       low     read-only   obeyed
ssl.cipher.suites                                    list      ""         -       medium  per-broker  obeyed
ssl.client.auth  string
    none  required|requested|none  medium  per-broker  obeyed
ssl.enabled.protocols                                list      TLSv1.2,TLSv1.3  -       medium  per-broker  obeyed
ssl.endpoint.identification.algorithm                string    https      -       low     per-broker  obeyed
ssl.engine.factory.class                             class     -          -       low     per-broker  refused:java-class
ssl.key.password                                     password  -          -       medium  per-broker  obeyed
ssl.keymanager.algorithm                             string    SunX509    -       medium  per-broker  refused:jsse
ssl.keystore.certificate.chain                       password  -          -       medium  per-broker  obeyed
ssl.keystore.key                                     password  -          -       medium  per-broker  obeyed
ssl.keystore.location                                string    -          -       medium  per-broker  obeyed
ssl.keystore.password                                password  -          -       medium  per-broker  obeyed
ssl.keystore.type                                    string    JKS        -       medium  per-broker  obeyed
ssl.principal.mapping.rules                          string    DEFAULT    -       low     read-only   obeyed
ssl.protocol                                         string    TLSv1.3    -       medium  per-broker  obeyed
ssl.provider                                         string    -          -       medium  per-broker  refused:jsse
ssl.secure.random.implementation                     string    -          -       low     per-broker  refused:jsse
ssl.trustmanager.algorithm                           string    PKIX       -       medium  per-broker  refused:jsse
ssl.truststore.certificates                          password  -          -       medium  per-broker  obeyed
ssl.truststore.location                              string    -          -       medium  per-broker  obeyed
ssl.truststore.password                              password  -          -       medium  per-broker  obeyed
ssl.truststore.type                                  string    JKS        -       medium  per-broker  obeyed
"""
