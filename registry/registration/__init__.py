"""Registration of brokers (103) and their heartbeats (322, 904), as plans."""
