"""Repair of tables that were damaged: by hand, by eviction, by a store that lost keys (docs/keys.md)."""
