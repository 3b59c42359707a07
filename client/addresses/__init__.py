"""Where name servers are: the syntax of address lists and the places they come from.

The HTTP endpoint itself is client.addresses.endpoint, which needs httpx."""

from client.addresses.sources import configured_addresses
from client.addresses.syntax import parse_addresses, split_address

__all__ = ["configured_addresses", "parse_addresses", "split_address"]
