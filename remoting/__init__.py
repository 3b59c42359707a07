"""The RocketMQ remoting protocol without input or output: bytes in, typed values out, and back.

Server, client and tests share it. It opens no socket, reads no clock and imports nothing else of this
project."""
