"""Sends a message to a topic with the C++ client: send.py NAMESRV TOPIC.

It signs with ACCESS_KEY and SECRET_KEY of its environment, if they are there. Its last line is a report as that of
java/Produce.java. It runs in an environment of its own, which has a package with librocketmq.so."""

import json
import os
import sys
import time

from rocketmq.client import Message, Producer
from rocketmq.exceptions import RocketMQException


def send(namesrv: str, topic: str) -> None:
    """Send it; RocketMQException if that fails."""
    producer = Producer(f"producers_of_{topic}")
    producer.set_namesrv_addr(namesrv)
    if "ACCESS_KEY" in os.environ:
        producer.set_session_credentials(os.environ["ACCESS_KEY"], os.environ["SECRET_KEY"], "ALIYUN")
    message = Message(topic)
    message.set_body("message")
    with producer:
        producer.send_sync(message)


def main() -> None:
    begin, failure = time.monotonic(), ""
    try:
        send(*sys.argv[1:])
    except RocketMQException as error:
        failure = str(error)
    report = {
        "sent": 0 if failure else 1,
        "failures": 1 if failure else 0,
        "ms": round(1000 * (time.monotonic() - begin)),
        "last_failure": failure,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
