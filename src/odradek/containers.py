"""A broker in a container, for testcontainers: `pip install 'odradek[containers]'`, and an image of Containerfile.

    with OdradekContainer() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

Where tests are in Python and run on Linux, `odradek.testing.OdradekCluster` needs no container.
"""

import re
from collections.abc import Mapping
from typing import Self

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from odradek import __version__

PORT = 9092
ADDRESS_FILE = "/tmp/odradek-address"
START = (
    f"until [ -s {ADDRESS_FILE} ]; do sleep 0.05; done; ODRADEK_ADVERTISED=$(cat {ADDRESS_FILE}) exec container-start"
)


class OdradekContainer(DockerContainer):
    """One broker with its embedded coordination server.

    `settings` are those of server.properties. The address that clients use is known once the container runs: the broker
    waits for it.
    """

    def __init__(
        self,
        image: str = f"odradek:{__version__}",
        settings: Mapping[str, str] | None = None,
        start_timeout_s: int = 60,
    ) -> None:
        super().__init__(image)
        self._start_timeout_s = start_timeout_s
        self.with_exposed_ports(PORT)
        self.with_env("ODRADEK_SETTINGS", "\n".join(f"{key}={value}" for key, value in (settings or {}).items()))
        self.with_kwargs(entrypoint=["sh", "-c", START])

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.get_container_host_ip()}:{self.get_exposed_port(PORT)}"

    def start(self) -> Self:
        """Start the container and return when the broker serves."""
        super().start()
        self.copy_into_container(self.bootstrap_servers.encode(), ADDRESS_FILE)
        started = LogMessageWaitStrategy(re.compile(r"\[KafkaServer id=\d+\] started"))
        started.with_startup_timeout(self._start_timeout_s).wait_until_ready(self)
        return self
