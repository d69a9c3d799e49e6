// One exchange: node sasl.js HOST:PORT TOPIC MECHANISM USER SECRET [CA-FILE [KEY-FILE CERTIFICATE-FILE]]. Prints what it
// found as JSON. For oauthbearer the secret is a token; mechanism none is no SASL. A refused login prints its error.
const fs = require("fs");
const { Kafka, logLevel } = require("kafkajs");

const [bootstrap, topic, mechanism, user, secret, ...files] = process.argv.slice(2);
const [authority, key, certificate] = files.map((file) => fs.readFileSync(file, "utf-8"));
const sasl =
  mechanism === "none"
    ? undefined
    : mechanism === "oauthbearer"
    ? { mechanism, oauthBearerProvider: async () => ({ value: secret }) }
    : { mechanism, username: user, password: secret };
const ssl = authority ? { ca: [authority], key, cert: certificate } : undefined;
const kafka = new Kafka({ clientId: "odradek-tests", brokers: [bootstrap], logLevel: logLevel.NOTHING, ssl, sasl, retry: { retries: 2 } });

async function main() {
  const producer = kafka.producer();
  await producer.connect();
  const [sent] = await producer.send({ topic, messages: [{ value: "one" }, { value: "two" }] });
  await producer.disconnect();
  const consumer = kafka.consumer({ groupId: `${topic}-${mechanism}` });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
    consumer.run({
      eachMessage: async ({ message }) => {
        seen.push(message.value.toString());
        if (seen.length === 2) resolve();
      },
    });
  });
  await consumer.disconnect();
  return { error: sent.errorCode, seen };
}

main()
  .catch((error) => ({ refused: error.message }))
  .then((found) => process.stdout.write(JSON.stringify(found)));
