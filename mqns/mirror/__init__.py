"""The mirror: keeps the brokers of other name servers registered at a redis-namesrv, without the brokers' help.

`Source` reads one name server, `Mirror` compares what all of them have with what it has written, a `Target` writes."""

from mqns.mirror.mirror import Mirror
from mqns.mirror.rounds import Round
from mqns.mirror.source import Source
from mqns.mirror.target import Target

__all__ = ["Mirror", "Round", "Source", "Target"]
