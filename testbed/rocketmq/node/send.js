// Sends a message to a topic: node send.js NAMESRV TOPIC. It signs with ACCESS_KEY and SECRET_KEY of its environment, if
// they are there. Its last line is a report as that of java/Produce.java.
'use strict';

const { Producer, Message } = require('ali-ons');

async function send(namesrv, topic) {
  const producer = new Producer({
    nameSrv: namesrv,
    producerGroup: `producers_of_${topic}`,
    accessKeyId: process.env.ACCESS_KEY,
    accessKeySecret: process.env.SECRET_KEY,
    httpclient: {}, // for looking up name servers over HTTP; demanded, and not used with nameSrv
    logger: console,
  });
  producer.on('error', error => console.error(error));
  await producer.ready();
  await producer.send(new Message(topic, 'TagA', 'message'));
}

const begin = Date.now();

function report(failure) {
  const sent = failure ? 0 : 1;
  const result = { sent, failures: 1 - sent, ms: Date.now() - begin, last_failure: failure };
  process.stdout.write(`\n${JSON.stringify(result)}\n`, () => process.exit());
}

send(process.argv[2], process.argv[3]).then(() => report(''), error => report(String(error.message)));
