"""TLS of one listener: its context, which is made anew when its files change, and the principals of certificates."""

import errno
import ssl
import threading
from collections.abc import Mapping
from datetime import UTC, datetime

from odradek.base.errors import ConfigError
from odradek.base.logs import get_logger
from odradek.base.value_classes import dataclass
from odradek.broker.security.authentication.listener_security import RefusalListener, ignore_refusal
from odradek.broker.security.principal import ANONYMOUS, USER_TYPE, KafkaPrincipal
from odradek.security.distinguished_names import NoMatchingRule, PrincipalMapper, subject_of
from odradek.security.stores import file_marks, key_material, store_files
from odradek.security.tls_contexts import server_context

log = get_logger(__name__)


class ListenerTls:
    def __init__(
        self,
        listener_name: str,
        settings: Mapping[str, str],
        mapping_rules: str,
        *,
        allow_dn_changes: bool = False,
        allow_san_changes: bool = False,
        on_refused: RefusalListener = ignore_refusal,
    ) -> None:
        """ConfigError where the settings can't be used. A reloaded certificate has the same subject, and all the
        alternative names, unless changes of them are allowed."""
        self._allow_dn_changes = allow_dn_changes
        self._allow_san_changes = allow_san_changes
        self._listener_name = listener_name
        self._settings = settings
        self._mapper = PrincipalMapper(mapping_rules)
        self._reloading = threading.Lock()
        self._marks = file_marks(store_files(settings))
        self._names = _names_of(settings)
        self._on_refused = on_refused
        self.context: ssl.SSLContext = server_context(settings)
        """The context of new connections. Replaced as a whole."""

    def report_refusal(self, host: str, reason: str) -> None:
        """Notify the listener of a certificate that was refused, of a client at this address."""
        self._on_refused(self._listener_name, host, reason)

    def principal_of(self, certificate: bytes | None) -> KafkaPrincipal:
        """PermissionError, which closes the connection, where no rule applies to its name."""
        if certificate is None:
            return ANONYMOUS
        try:
            return KafkaPrincipal(USER_TYPE, self._mapper.name_of(subject_of(certificate)))
        except (NoMatchingRule, ValueError) as error:
            raise PermissionError(errno.EACCES, str(error)) from None

    def verify_again(self, certificate: bytes | None) -> None:
        """PermissionError where the certificate of a resumed session has ended since its first handshake, which alone
        verified it. Other changes, of trust and of revocation lists, make a new context, which resumes nothing."""
        from cryptography.x509 import load_der_x509_certificate

        if certificate is not None and load_der_x509_certificate(certificate).not_valid_after_utc < datetime.now(UTC):
            raise PermissionError(errno.EACCES, "the certificate of the resumed session has expired")

    def reload(self) -> bool:
        """Take changed files into use; return whether there were any. Files that can't be used are logged, and the old
        ones stay."""
        with self._reloading:
            marks = file_marks(store_files(self._settings))
            if marks == self._marks:
                return False
            self._marks = marks
            try:
                names = _names_of(self._settings)
                self._check_names(names)
                self.context = server_context(self._settings)
                self._names = names
            except ConfigError as error:
                log.error("changed certificates can't be used", listener=self._listener_name, reason=str(error))
                return False
            log.info("certificates reloaded", listener=self._listener_name)
            return True

    def check(self, settings: Mapping[str, str]) -> None:
        """ConfigError if the listener can't use these settings in place of its own."""
        with self._reloading:
            self._check_names(_names_of(settings))
            server_context(settings)

    def replace(self, settings: Mapping[str, str]) -> None:
        """Use these settings. If they are invalid, the old ones stay in use."""
        if settings == self._settings:
            return
        with self._reloading:
            try:
                names = _names_of(settings)
                self._check_names(names)
                self.context = server_context(settings)
            except ConfigError as error:
                log.error("changed stores can't be used", listener=self._listener_name, reason=str(error))
                return
            self._settings, self._names = settings, names
            self._marks = file_marks(store_files(settings))
        log.info("stores replaced", listener=self._listener_name)

    @property
    def expires_s(self) -> float:
        """Unix time at which the first certificate of the listener's chain ends."""
        return self._names.expires_s

    def _check_names(self, names: "_CertificateNames") -> None:
        if not self._allow_dn_changes and names.subject != self._names.subject:
            raise ConfigError(f"the subject changed to {names.subject}; ssl.allow.dn.changes would allow it")
        if not self._allow_san_changes and not self._names.alternatives <= names.alternatives:
            raise ConfigError("alternative names are missing; ssl.allow.san.changes would allow it")


@dataclass(frozen=True, slots=True)
class _CertificateNames:
    subject: str
    alternatives: frozenset[str]
    expires_s: float


def _names_of(settings: Mapping[str, str]) -> _CertificateNames:
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName, load_pem_x509_certificates

    material = key_material(settings)
    if material is None:
        return _CertificateNames("", frozenset(), 0)
    chain = load_pem_x509_certificates(material.chain)
    try:
        found = chain[0].extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        found = SubjectAlternativeName([])
    return _CertificateNames(
        chain[0].subject.rfc4514_string(),
        frozenset(str(name.value) for name in found),
        min(certificate.not_valid_after_utc for certificate in chain).timestamp(),
    )
