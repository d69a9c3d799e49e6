// Every call of kafkajs's admin client that a cluster without security can answer, done once: node story.js HOST:PORT TOPIC.
// Prints what each gave, for a comparison of clusters.
const { Kafka, logLevel, ConfigResourceTypes } = require("kafkajs");

const [bootstrap, topic] = process.argv.slice(2);
const [group, missing, nobody] = [`${topic}-group`, `${topic}-missing`, `${topic}-nobody`];
const retry = { retries: 0 };
const kafka = new Kafka({ clientId: "odradek-tests", brokers: [bootstrap], logLevel: logLevel.NOTHING, retry });
const config = (name, value) => [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries: [{ name, value }] }];
const assigned = (partitionAssignment) => ({ topics: [{ topic, partitionAssignment }] });

async function sixRecords() {
  const producer = kafka.producer();
  await producer.connect();
  const messages = [0, 1, 2, 3, 4, 5].map((n) => ({ value: `v${n}`, partition: n % 2 }));
  const written = await producer.send({ topic, messages });
  await producer.disconnect();
  return written;
}

function calls(admin) {
  return {
    createTopics: () => admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] }),
    createTopicsAgain: () => admin.createTopics({ topics: [{ topic }] }),
    createTopicsBadly: () => admin.createTopics({ topics: [{ topic: "a b" }] }),
    createTopicsTooMany: () => admin.createTopics({ validateOnly: true, topics: [{ topic: missing, replicationFactor: 9 }] }),
    createTopicsWithConfig: () =>
      admin.createTopics({ validateOnly: true, topics: [{ topic: missing, configEntries: [{ name: "nosuch", value: "1" }] }] }),
    produce: sixRecords,
    fetchTopicMetadata: () => admin.fetchTopicMetadata({ topics: [topic] }),
    fetchTopicMetadataOfNone: () => admin.fetchTopicMetadata({ topics: ["a b"] }),
    fetchTopicOffsets: () => admin.fetchTopicOffsets(topic),
    fetchTopicOffsetsByTimestamp: () => admin.fetchTopicOffsetsByTimestamp(topic, 0),
    fetchTopicOffsetsInTheFuture: () => admin.fetchTopicOffsetsByTimestamp(topic, 4102444800000),
    describeCluster: () => admin.describeCluster(),
    alterConfigs: () => admin.alterConfigs({ validateOnly: false, resources: config("retention.ms", "1234567") }),
    alterConfigsBadly: () => admin.alterConfigs({ validateOnly: true, resources: config("retention.ms", "soon") }),
    describeConfigs: () => admin.describeConfigs({ includeSynonyms: true, resources: [{ type: 2, name: topic }] }),
    describeConfigsOfNone: () => admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: missing }] }),
    setOffsets: () => admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: "1" }] }),
    fetchOffsets: () => admin.fetchOffsets({ groupId: group, topics: [topic] }),
    fetchOffsetsResolved: () => admin.fetchOffsets({ groupId: group, topics: [topic], resolveOffsets: true }),
    resetOffsets: () => admin.resetOffsets({ groupId: group, topic, earliest: true }),
    listGroups: async () => (await admin.listGroups()).groups.filter((found) => found.groupId === group),
    describeGroups: () => admin.describeGroups([group, nobody]),
    deleteGroups: () => admin.deleteGroups([group]),
    deleteNoGroups: () => admin.deleteGroups([nobody]),
    deleteTopicRecords: () => admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "1" }] }),
    deleteTooManyRecords: () => admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: "1000" }] }),
    alterPartitionReassignments: () => admin.alterPartitionReassignments(assigned([{ partition: 0, replicas: [0] }])),
    reassignToNobody: () => admin.alterPartitionReassignments(assigned([{ partition: 0, replicas: [7] }])),
    listPartitionReassignments: () => admin.listPartitionReassignments({ topics: [{ topic, partitions: [0] }] }),
    createPartitions: () => admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] }),
    createFewerPartitions: () => admin.createPartitions({ topicPartitions: [{ topic, count: 1 }] }),
    deleteTopics: () => admin.deleteTopics({ topics: [topic] }),
    deleteNoTopics: () => admin.deleteTopics({ topics: [missing] }),
  };
}

async function outcome(ask) {
  try {
    return (await ask()) ?? null;
  } catch (error) {
    return { raised: error.name, type: error.type ?? null, inner: (error.errors ?? []).map((each) => each.type ?? each.name) };
  }
}

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  const story = [];
  for (const [call, ask] of Object.entries(calls(admin))) story.push([call, await outcome(ask)]);
  await admin.disconnect();
  console.log(JSON.stringify(story));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
