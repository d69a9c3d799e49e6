"""Classes of Kafka for OAUTHBEARER that settings name. None is loaded: each name selects a part of our own code.

Unsecured tokens, which any client can make, need the name of an unsecured handler.
"""

from collections.abc import Mapping

from odradek.base.errors import ConfigError

_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
UNSECURED_VALIDATOR = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
UNSECURED_LOGIN = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
VALIDATORS = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
LOGINS = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
SERVER_HANDLER_KEY = "sasl.server.callback.handler.class"
LOGIN_HANDLER_KEY = "sasl.login.callback.handler.class"
HANDLERS: Mapping[str, tuple[str, ...]] = {
    SERVER_HANDLER_KEY: (*VALIDATORS, UNSECURED_VALIDATOR),
    LOGIN_HANDLER_KEY: (*LOGINS, UNSECURED_LOGIN),
}


def check_handlers(settings: Mapping[str, str]) -> None:
    """ConfigError for a handler class that isn't one of Kafka's for OAUTHBEARER, or isn't set for it alone."""
    for name, text in settings.items():
        key = next((key for key in HANDLERS if name.endswith(key)), None)
        if key is None or not text.strip():
            continue
        if text.strip() not in HANDLERS[key]:
            raise ConfigError(
                f"Invalid value {text.strip()} for configuration {name}: Java classes can't run in this broker, it "
                f"would go on without this one. Valid here: no value, or {', '.join(HANDLERS[key])}."
            )
        prefix = name.removesuffix(key)
        if not prefix.startswith("listener.name.") or not prefix.endswith(".oauthbearer."):
            raise ConfigError(f"{name} must be listener.name.LISTENER.oauthbearer.{key}")
