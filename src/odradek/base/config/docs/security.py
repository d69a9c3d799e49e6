"""Documentation of TLS, SASL, tokens and authorization."""

TEXT = """
authorizer.class.name
    The authorizer, by the name of Kafka's class: kafka.security.authorizer.AclAuthorizer, which keeps its ACLs in
    ZooKeeper, or empty, which allows everything to every client. Other classes are refused.
super.users
    Principals that may do everything, as TYPE:NAME;TYPE:NAME. Brokers must be among them, by the principal that they
    have to each other, or have ClusterAction on the cluster by ACL.
allow.everyone.if.no.acl.found
    Whether everything is allowed on a resource without any ACL.
authorizer.zookeeper.url
    Another ZooKeeper for the authorizer.
authorizer.zookeeper.connection.timeout.ms
    How long the authorizer waits for that ZooKeeper.
authorizer.zookeeper.session.timeout.ms
    The timeout of its session there.
authorizer.zookeeper.max.in.flight.requests
    How many requests it may have on the way to that ZooKeeper.
connections.max.reauth.ms
    The longest that a SASL login holds before the client must log in again; 0 never asks.
delegation.token.expiry.check.interval.ms
    How often expired delegation tokens are removed.
delegation.token.expiry.time.ms
    How long a delegation token is good before it has to be renewed.
delegation.token.master.key
    The old name of delegation.token.secret.key.
delegation.token.max.lifetime.ms
    The age beyond which a delegation token can't be renewed.
delegation.token.secret.key
    The secret that delegation tokens are signed with, the same on every broker. Without one there are no tokens.
password.encoder.cipher.algorithm
    The cipher for passwords that are kept in ZooKeeper.
password.encoder.iterations
    How often the secret is hashed to make the key of that cipher.
password.encoder.key.length
    The length of the cipher's key, in bits.
password.encoder.keyfactory.algorithm
    How the secret becomes a key; by default the strongest that Java offers.
password.encoder.old.secret
    The previous password.encoder.secret, set while it is being changed.
password.encoder.secret
    The secret behind passwords that are set while the broker runs.
principal.builder.class
    The Java class that turns a TLS or SASL identity into a principal.
sasl.client.callback.handler.class
    A Java class that answers a SASL client's questions.
sasl.enabled.mechanisms
    The SASL mechanisms that clients may log in with.
sasl.jaas.config
    Login settings in JAAS notation. On brokers it is set for one listener and mechanism.
sasl.kerberos.kinit.cmd
    The path of kinit.
sasl.kerberos.min.time.before.relogin
    How long the thread that refreshes tickets sleeps at least.
sasl.kerberos.principal.to.local.rules
    Rules that shorten a Kerberos principal to a user name. The first that fits counts.
sasl.kerberos.service.name
    The Kerberos name that brokers run under.
sasl.kerberos.ticket.renew.jitter
    The random part that is added to the time of a ticket's renewal.
sasl.kerberos.ticket.renew.window.factor
    The part of a ticket's life after which it is renewed.
sasl.login.callback.handler.class
    How tokens of OAUTHBEARER are obtained for other brokers, by the name of Kafka's class:
    OAuthBearerLoginCallbackHandler, or the one for unsecured tokens. Set as listener.name.NAME.oauthbearer.…
sasl.login.class
    A Java class that does the login.
sasl.login.connect.timeout.ms
    How long connecting to an OAuth provider may take.
sasl.login.read.timeout.ms
    How long an OAuth provider may take to answer.
sasl.login.refresh.buffer.seconds
    How much time must be left on a credential when it is refreshed.
sasl.login.refresh.min.period.seconds
    How long a credential is used at least before it is refreshed.
sasl.login.refresh.window.factor
    The part of a credential's life after which it is refreshed.
sasl.login.refresh.window.jitter
    The random part that is added to the time of a credential's refresh.
sasl.login.retry.backoff.max.ms
    The longest pause between attempts to log in at an OAuth provider.
sasl.login.retry.backoff.ms
    The first pause between attempts to log in at an OAuth provider. It doubles each time.
sasl.mechanism.inter.broker.protocol
    The SASL mechanism that brokers use among themselves. Must be among sasl.enabled.mechanisms.
sasl.oauthbearer.clock.skew.seconds
    How far the clocks of broker and OAuth provider may differ.
sasl.oauthbearer.expected.audience
    The audiences that a token may be meant for.
sasl.oauthbearer.expected.issuer
    The issuer that a token must come from.
sasl.oauthbearer.jwks.endpoint.refresh.ms
    How often the provider's keys are fetched anew.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    The longest pause between attempts to fetch the provider's keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    The first pause between attempts to fetch the provider's keys. It doubles each time.
sasl.oauthbearer.jwks.endpoint.url
    Where the provider's keys are found: https://…, file:///…, or http:// on this machine.
sasl.oauthbearer.scope.claim.name
    The claim that holds a token's scope.
sasl.oauthbearer.sub.claim.name
    The claim that holds a token's subject.
sasl.oauthbearer.token.endpoint.url
    Where tokens are asked for: https://…, http:// on this machine, or file:///… with a token.
sasl.server.callback.handler.class
    How OAUTHBEARER tokens are verified, by the name of Kafka's class: OAuthBearerValidatorCallbackHandler, or the one
    for unsecured tokens, which any client can make. Set for one listener as listener.name.NAME.oauthbearer.…
sasl.server.max.receive.size
    The largest message that is read from a client that hasn't logged in yet.
security.providers
    Java classes that bring further security algorithms.
ssl.allow.dn.changes
    Whether a certificate may be replaced while running by one for another distinguished name.
ssl.allow.san.changes
    Whether a certificate may be replaced while running by one with other alternative names.
ssl.cipher.suites
    The cipher suites that may be negotiated; by default all that are available.
ssl.client.auth
    Whether clients must, may or need not show a certificate.
ssl.enabled.protocols
    The TLS versions that may be negotiated.
ssl.endpoint.identification.algorithm
    https checks that a server's certificate is for the host that was dialled; an empty value skips the check.
ssl.engine.factory.class
    A Java class that makes TLS engines.
ssl.key.password
    What opens the private key.
ssl.keymanager.algorithm
    The Java algorithm that picks keys.
ssl.keystore.certificate.chain
    The broker's certificate and those that signed it, as PEM text.
ssl.keystore.key
    The broker's private key, as PEM text.
ssl.keystore.location
    The file with the broker's key and certificate.
ssl.keystore.password
    What opens that file. PEM has none.
ssl.keystore.type
    The format of that file: JKS, PKCS12 or PEM.
ssl.principal.mapping.rules
    Rules that shorten a certificate's distinguished name to a user name. The first that fits counts.
ssl.protocol
    The TLS version that negotiation begins with.
ssl.provider
    The Java security provider for TLS.
ssl.secure.random.implementation
    The Java source of randomness for TLS.
ssl.trustmanager.algorithm
    The Java algorithm that decides about trust.
ssl.truststore.certificates
    The authorities that are trusted, as PEM text.
ssl.truststore.location
    The file with the authorities that are trusted.
ssl.truststore.password
    What opens that file. Without it the file is read unchecked.
ssl.truststore.type
    The format of that file: JKS, PKCS12 or PEM.
"""
