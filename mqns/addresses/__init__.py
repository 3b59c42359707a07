"""Name server addresses: the syntax of address lists, and their sources.

The HTTP endpoint is in mqns.addresses.endpoint, which needs httpx."""

from mqns.addresses.sources import configured_addresses
from mqns.addresses.syntax import parse_addresses, split_address

__all__ = ["configured_addresses", "parse_addresses", "split_address"]
