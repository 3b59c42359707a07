"""What the conformance tests share: a blocking client, brokers as values, running servers, and scenes on them."""
