"""`odradek certs`: certificates of a cluster that `odradek up --secure` made."""

from datetime import UTC, datetime
from typing import Annotated

from odradek.apps.cli.grammar.declaration import Option
from odradek.apps.cli.grammar.noun import Noun
from odradek.apps.cli.lifecycle import DataOption
from odradek.apps.cli.output import DEFAULT_DATA, Format, FormatOption, note, print_rows
from odradek.base.errors import FatalError
from odradek.local.cluster_processes import LocalCluster
from odradek.local.cluster_security import ClusterSecurity

app = Noun("Certificates of a cluster that `odradek up --secure` made.", examples=["odradek certs list"])

_COLUMNS = ("certificate", "expires", "days_left")


def _security(cluster: LocalCluster) -> ClusterSecurity:
    if not cluster.security.exists:
        raise FatalError(f"{cluster.data} has no certificates: they are made by odradek up --secure")
    return cluster.security


@app.verb("list", examples=["odradek certs list --data /srv/odradek"])
def show(data: DataOption = DEFAULT_DATA, output: FormatOption = Format.TABLE) -> None:
    """List the certificates and their ends."""
    now = datetime.now(UTC)
    rows = [
        {"certificate": name, "expires": f"{expires:%Y-%m-%d %H:%M}", "days_left": (expires - now).days}
        for name, expires in _security(LocalCluster(data)).expiries().items()
    ]
    print_rows(rows, _COLUMNS, output)


@app.verb(examples=["odradek certs renew", "odradek certs renew --broker 1"])
def renew(
    broker: Annotated[
        int | None, Option("--broker", metavar="N", help="The broker that gets a new certificate.", show_default="all")
    ] = None,
    data: DataOption = DEFAULT_DATA,
) -> None:
    """Make new keys and certificates for the brokers; running brokers use them within seconds, without a restart."""
    cluster = LocalCluster(data)
    security = _security(cluster)
    chosen = [known.id for known in cluster.brokers] if broker is None else [cluster.broker(broker).id]
    security.issue(chosen)
    for broker_id in chosen:
        note(f"broker {broker_id} has a new certificate")
