"""Names of Kerberos settings, without the library."""

SERVICE_KEY = "sasl.kerberos.service.name"
RULES_KEY = "sasl.kerberos.principal.to.local.rules"
