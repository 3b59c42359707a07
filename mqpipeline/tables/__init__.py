"""What the clean events say, as intervals: sessions of members, versions of brokers and of routes."""
