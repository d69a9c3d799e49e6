"""A search for the frames that keep a decoder busy longest, by CPU time.

It measures every shape of every request in a small frame, then climbs: the worst are changed at random, and what is
worse still is kept. A frame is worth what it would cost at the largest size that a broker takes, within the budget of a
request. CPU time is compared with that of a plain request, measured before and after each sample, since a busy machine
makes everything slower.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from statistics import median
from time import process_time_ns

from adversary import LONG_UNKNOWN_TAG, UNKNOWN_TAG, BodyWriter, Shape

from odradek.protocol.api_keys import APIS
from odradek.protocol.codec import python_decoder
from odradek.protocol.decoding_steps import STEPS_MAX
from odradek.protocol.messages.metadata import MetadataRequest

FRAME_BYTES_MAX = 100 << 20
ENDLESS = 1 << 60
SAMPLES = 5
SAMPLE_COUNT = 300
PLAIN = Shape(MetadataRequest, 9, ("topics",), (SAMPLE_COUNT,))


@dataclass(frozen=True)
class Cost:
    shape: Shape
    size: int
    steps: int
    plain_ratio: float
    """Ratio of the CPU time to that of the plain request."""

    @property
    def per_step(self) -> float:
        """In steps of the plain request."""
        return self.plain_ratio * steps_of(PLAIN) / self.steps

    @property
    def worst(self) -> float:
        """In plain requests: of so many of the same that a frame, or its steps, are used up."""
        return self.plain_ratio * min(FRAME_BYTES_MAX / self.size, STEPS_MAX / self.steps)


def decode_ns(shape: Shape, body: memoryview, steps: int = ENDLESS) -> int:
    """The end of what was decoded included: it is freed object by object."""
    decode = shape.message.decoder(shape.version)
    began = process_time_ns()
    decoded = decode(body, 0, steps)
    del decoded
    return process_time_ns() - began


def body_of(shape: Shape) -> memoryview:
    return memoryview(bytearray(BodyWriter(shape.message, shape.version).body(shape)))


def steps_of(shape: Shape) -> int:
    return BodyWriter(shape.message, shape.version).steps(shape)


class Yardstick:
    """A plain request, by whose CPU time others are measured, as Python decodes it: steps were made for that. Compiled
    code spends a tenth of it on plain fields, and about as much on objects."""

    def __init__(self) -> None:
        self._body = body_of(PLAIN)
        self._decode = python_decoder(PLAIN.message, PLAIN.version)
        self.undisturbed_ns = min(self.ns() for _ in range(2000))
        self.undisturbed_step_ns = self.undisturbed_ns / steps_of(PLAIN)

    def ns(self) -> int:
        decode = self._decode
        began = process_time_ns()
        decode(self._body, 0, ENDLESS)
        return process_time_ns() - began

    def undisturbed_s(self, work: Callable[[], object]) -> float:
        """The CPU time that the work would take if nothing else ran on the machine."""
        before = self._slowness()
        began = process_time_ns()
        work()
        spent = process_time_ns() - began
        return spent / 1e9 / ((before + self._slowness()) / 2)

    def _slowness(self) -> float:
        return median(self.ns() for _ in range(201)) / self.undisturbed_ns


class CostSearch:
    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._yardstick = Yardstick()

    def run(self, rounds: int, kept: int) -> list[Cost]:
        """The worst found, each API once."""
        worst: dict[str, Cost] = {}
        for shape in self._every_shape():
            self._keep(worst, self.measure(shape))
        for _ in range(rounds):
            best = sorted(worst.values(), key=lambda cost: -cost.worst)[:kept]
            self._keep(worst, self.measure(self._changed(self._chance.choice(best).shape)))
        return sorted(worst.values(), key=lambda cost: -cost.worst)[:kept]

    def measure(self, shape: Shape) -> Cost:
        body = body_of(shape)
        ratios = []
        for _ in range(SAMPLES):
            before = self._yardstick.ns()
            cost = decode_ns(shape, body)
            ratios.append(2 * cost / (before + self._yardstick.ns()))
        return Cost(shape, len(body), steps_of(shape), median(ratios))

    def _keep(self, worst: dict[str, Cost], found: Cost) -> None:
        name = found.shape.message.__name__
        if name not in worst or found.worst > worst[name].worst:
            worst[name] = found

    def _every_shape(self) -> list[Shape]:
        return [
            shape
            for api in APIS.values()
            for version in api.request.VERSIONS
            for shape in BodyWriter(api.request, version).shapes(SAMPLE_COUNT)
        ]

    def _changed(self, shape: Shape) -> Shape:
        """Another version, another spread over its arrays, or other tagged fields."""
        chance = self._chance
        kind = chance.randrange(3)
        if kind == 0:
            version = chance.choice(shape.message.VERSIONS)
            tags = shape.tags if version in shape.message.FLEXIBLE else ()
            if (shape.path in BodyWriter(shape.message, version).array_paths()) or (not shape.path and tags):
                return replace(shape, version=version, tags=tags)
        if kind == 1 and shape.counts:
            few = tuple(chance.choice((1, 2, 5, 17, 18, 60)) for _ in shape.counts[1:])
            return replace(shape, counts=(max(1, SAMPLE_COUNT // prod(few)), *few))
        if shape.version in shape.message.FLEXIBLE and shape.tags:
            known = BodyWriter(shape.message, shape.version).known_tags(shape.path)
            choices = (UNKNOWN_TAG, LONG_UNKNOWN_TAG, *known)
            count = len(shape.tags) if not shape.counts else chance.randrange(1, 9)
            return replace(shape, tags=tuple(chance.choice(choices) for _ in range(count)))
        return shape


def scaled(cost: Cost) -> Shape:
    """The same with as many elements as the size of a frame and the steps of a request allow."""
    shape = cost.shape
    factor = 0.98 * min(FRAME_BYTES_MAX / cost.size, STEPS_MAX / cost.steps)
    if not shape.counts:
        return replace(shape, tags=shape.tags * int(factor))
    first, *rest = shape.counts
    return replace(shape, counts=(int(first * factor), *rest))
