"""Whether two name servers agree, now or again and again."""
