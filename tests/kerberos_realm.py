"""A Kerberos realm for tests: a key distribution centre on this machine, by k5test, and keytabs of its principals."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from obtaining import Unobtainable
from odradek.local.zookeeper_server import free_port

_PROGRAMS = ("krb5kdc", "kadmin.local", "kdb5_util", "kinit")
_SYSTEM_PROGRAMS = "/usr/sbin"
_CONFIG = {
    "libdefaults": {"dns_canonicalize_hostname": "false", "rdns": "false", "udp_preference_limit": "1"},
    "realms": {"$realm": {"kdc": "127.0.0.1:$port0"}},
}


class KerberosRealm:
    def __init__(self, realm: Any, directory: Path) -> None:
        self._realm = realm
        self._directory = directory
        self.name: str = realm.realm
        self.config = Path(realm.env["KRB5_CONFIG"])

    def keytab(self, principal: str) -> Path:
        """Make a principal with a random key, and return the file with it."""
        self._realm.addprinc(principal)
        path = self._directory / f"{principal.replace('/', '-')}.keytab"
        self._realm.extract_keytab(principal, str(path))
        return path

    def ticket_cache(self, principal: str, keytab: Path) -> Path:
        path = self._directory / f"{principal.replace('/', '-')}.cache"
        self._realm.kinit(principal, flags=["-k", "-t", str(keytab), "-c", str(path)])
        return path


@contextmanager
def kerberos_realm(directory: Path) -> Iterator[KerberosRealm]:
    """A realm that runs meanwhile, and is the one of this process and of those that it starts."""
    path = os.environ.get("PATH", "")
    if _SYSTEM_PROGRAMS not in path.split(":"):
        os.environ["PATH"] = f"{path}:{_SYSTEM_PROGRAMS}"
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise Unobtainable(f"{', '.join(missing)} not installed (make kerberos)")
    try:
        import gssapi  # noqa: F401
        import k5test
    except ImportError as error:
        raise Unobtainable(f"{error.name} is not installed (make kerberos)") from None
    options = {"create_user": False, "create_host": False, "get_creds": False}
    realm = k5test.K5Realm(portbase=free_port(), krb5_conf=_CONFIG, **options)
    before = {name: os.environ.get(name) for name in ("KRB5_CONFIG", "KRB5RCACHEDIR", "KRB5CCNAME", "KRB5_KTNAME")}
    os.environ["KRB5_CONFIG"] = realm.env["KRB5_CONFIG"]
    os.environ["KRB5CCNAME"] = f"FILE:{directory / 'default.cache'}"
    try:
        yield KerberosRealm(realm, directory)
    finally:
        realm.stop()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(realm.tmpdir, ignore_errors=True)
