"""Parts of a broker that most engines get in their constructors."""

from odradek.base.clock import Clock
from odradek.base.config.live_config import LiveConfig
from odradek.base.value_classes import dataclass
from odradek.broker.purgatory.reaper import ExpirationReaper
from odradek.model.metadata_image import MetadataCache


@dataclass(frozen=True, slots=True)
class BrokerParts:
    id: int
    live: LiveConfig
    metadata: MetadataCache
    reaper: ExpirationReaper
    clock: Clock
