"""Reading the body of a registration, without the blocks of its table that are stored unchanged."""

import time

from registry.long_work.time_slices import cooperatively
from registry.plans import Plan
from registry.registration.request import Registration
from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.registration import (
    RegisterBrokerBody,
    decode_register_broker_body_cooperatively,
    decode_usual_body,
)
from rocketmq_remoting.table_blocks import Block, TableBlocks


class BodyReader:
    """The body of one registration, decoded at most once for the same `stored` blocks."""

    def __init__(self, registration: Registration) -> None:
        self._registration = registration
        self.blocks = TableBlocks()
        self.body: RegisterBrokerBody | None = None

    def read(self, stored: dict[bytes, Block] | None = None) -> Plan[RegisterBrokerBody]:
        """Return the body without the topics of unchanged blocks. Raises BodyError."""
        if self.body is None or (self.blocks.unchanged and self.blocks.previous is not stored):
            r = self._registration
            self.body = decode_usual_body(r.body, version=r.version, compressed=r.compressed)
            if self.body is None:
                self.blocks = TableBlocks(stored)
                self.body = yield from cooperatively(self._decoding())
        return self.body

    def _decoding(self) -> Cooperative[RegisterBrokerBody]:
        r = self._registration
        return decode_register_broker_body_cooperatively(
            r.body,
            version=r.version,
            compressed=r.compressed,
            now_ms=int(time.time() * 1000),
            blocks=self.blocks,
        )
