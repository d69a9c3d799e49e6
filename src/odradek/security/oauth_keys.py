"""Settings of a client that shows bearer tokens, by Kafka's names, with Kafka's defaults. Values only: nothing is
imported that a client without tokens doesn't need."""

from collections.abc import Mapping

ENDPOINT_KEY = "sasl.oauthbearer.token.endpoint.url"
TIMEOUT_MS = 10_000
LOGIN_NUMBERS: Mapping[str, float] = {
    "sasl.login.connect.timeout.ms": TIMEOUT_MS,
    "sasl.login.read.timeout.ms": TIMEOUT_MS,
    "sasl.login.refresh.buffer.seconds": 300,
    "sasl.login.refresh.min.period.seconds": 60,
    "sasl.login.refresh.window.factor": 0.8,
    "sasl.login.refresh.window.jitter": 0.05,
    "sasl.login.retry.backoff.max.ms": 10_000,
    "sasl.login.retry.backoff.ms": 100,
}
OAUTH_CLIENT_KEYS = (
    ENDPOINT_KEY,
    "sasl.login.callback.handler.class",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    *LOGIN_NUMBERS,
)
