// What kafkajs's admin client can do, done once: node admin.js HOST:PORT TOPIC. Prints what it found as JSON.
const { Kafka, logLevel, ConfigResourceTypes } = require("kafkajs");

const [bootstrap, topic] = process.argv.slice(2);
const group = `${topic}-group`;
const kafka = new Kafka({ clientId: "odradek-tests", brokers: [bootstrap], logLevel: logLevel.NOTHING });
const resource = { type: ConfigResourceTypes.TOPIC, name: topic };

async function consume(count) {
  const consumer = kafka.consumer({ groupId: group });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    consumer.run({
      eachMessage: async ({ message }) => {
        seen.push(message.value.toString());
        if (seen.length === count) resolve();
      },
    });
  });
  await consumer.disconnect();
  return seen.sort();
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  const found = {};
  found.created = await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] });
  found.again = await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] });
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] });
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] });
  found.partitions = metadata.topics[0].partitions.length;
  found.listed = (await admin.listTopics()).includes(topic);
  await admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: "12345" }] }] });
  const described = await admin.describeConfigs({ resources: [{ ...resource, configNames: ["retention.ms"] }] });
  found.retention = described.resources[0].configEntries[0].configValue;
  const cluster = await admin.describeCluster();
  found.brokers = cluster.brokers.length;
  found.controller = cluster.controller;

  const producer = kafka.producer();
  await producer.connect();
  const messages = [0, 1, 2, 3, 4, 5].map((n) => ({ value: `v${n}`, partition: n % 3 }));
  await producer.send({ topic, messages });
  await producer.disconnect();
  found.consumed = await consume(6);
  found.offsets = (await admin.fetchTopicOffsets(topic)).map((o) => `${o.partition}:${o.low}-${o.high}`).sort();
  found.groups = (await admin.listGroups()).groups.some((g) => g.groupId === group);
  const [description] = (await admin.describeGroups([group])).groups;
  found.state = description.state;
  found.committed = (await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions.map((p) => p.offset);
  await admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: "1" }] });
  const moved = await admin.fetchOffsets({ groupId: group, topics: [topic] });
  found.moved = moved[0].partitions.find((p) => p.partition === 0).offset;
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "1" }] });
  found.low = (await admin.fetchTopicOffsets(topic)).find((o) => o.partition === 0).low;
  await admin.deleteGroups([group]);
  await admin.deleteTopics({ topics: [topic] });
  while ((await admin.listTopics()).includes(topic)) await new Promise((resolve) => setTimeout(resolve, 100));
  found.gone = true;
  await admin.disconnect();
  console.log(JSON.stringify(found));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
