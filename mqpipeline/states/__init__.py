"""What state each unit is in, and when: slots, brokers, pairs of topic and broker, topics.

A frame of states has `namespace`, the unit's columns, `state` (`UP`, `DOWN`, `PLANNED`, `UNKNOWN`), `from_ms` and
`to_ms`; intervals of a unit do not overlap, and equal ones that touch are one. An instant no interval covers is
UNKNOWN too: the unit was not seen yet, or is no longer counted.
"""
