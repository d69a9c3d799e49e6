// BOOTSTRAP TOPIC GROUP: kafkajs as one of the readers of test_groups_of_all_clients. NODE_PATH says where it is.
const { Kafka, logLevel } = require('kafkajs')

const [bootstrap, topic, group] = process.argv.slice(2)
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.NOTHING, retry: { retries: 30 } })
const consumer = kafka.consumer({ groupId: group, heartbeatInterval: 300, sessionTimeout: 6000, rebalanceTimeout: 10000, maxWaitTimeInMs: 200 })
const tell = (what, partition, offset) => console.log(`${what} ${partition} ${offset} ${Date.now()}`)

async function eachBatch({ batch, resolveOffset, heartbeat }) {
  for (const message of batch.messages) {
    tell('R', batch.partition, message.offset)
    resolveOffset(message.offset)
  }
  const next = (BigInt(batch.lastOffset()) + 1n).toString()
  try {
    await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }])
    tell('C', batch.partition, next)
  } catch (error) {
    console.error(String(error))
  }
  await heartbeat()
}

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatch })
}

process.on('SIGTERM', () => consumer.disconnect().then(() => process.exit(0)))
main().catch((error) => { console.error(error); process.exit(1) })
