"""The RocketMQ remoting protocol, sans-IO: decodes bytes to typed values and encodes them.

Shared by server, client and tests. It opens no socket, reads no clock and imports no other package of this
project."""
