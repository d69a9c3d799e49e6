// Three transactions: node transactions.js HOST:PORT TOPIC TRANSACTIONAL-ID GROUP OFFSET. The second is aborted, the third commits an
// offset of the group. Prints the values that a reader of committed records gets, as JSON.
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, transactionalId, group, offset] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "odradek-tests", brokers: [bootstrap], logLevel: logLevel.NOTHING });

async function main() {
  const producer = kafka.producer({ transactionalId, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  const first = await producer.transaction();
  await first.send({ topic, messages: [{ value: "one" }, { value: "two" }] });
  await first.commit();
  const second = await producer.transaction();
  await second.send({ topic, messages: [{ value: "aborted" }] });
  await second.abort();
  const third = await producer.transaction();
  await third.send({ topic, messages: [{ value: "three" }] });
  await third.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions: [{ partition: 0, offset }] }] });
  await third.commit();
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: `${group}-readers`, readUncommitted: false });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    consumer.run({
      eachMessage: async ({ message }) => {
        seen.push(message.value.toString());
        if (seen.length === 3) resolve();
      },
    });
  });
  await consumer.disconnect();
  return seen;
}

main()
  .then((seen) => process.stdout.write(JSON.stringify(seen)))
  .catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  });
