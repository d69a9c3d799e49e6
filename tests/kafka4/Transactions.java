import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactions of Kafka's own producer: BOOTSTRAP TOPIC ID COUNT. Every third is aborted, each writes to two partitions
 * and commits a position of a group. Prints "committed N" or "aborted N", at the end what a reader of committed records
 * sees, and the group's position.
 */
public class Transactions {
    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0], topic = arguments[1], id = arguments[2];
        int count = Integer.parseInt(arguments[3]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("group.id", id);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        for (String side : List.of("key", "value")) {
            settings.put(side + ".serializer", "org.apache.kafka.common.serialization.StringSerializer");
            settings.put(side + ".deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        }
        TopicPartition first = new TopicPartition(topic, 0);
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
                producer.initTransactions();
                for (int number = 0; number < count; number++) {
                    producer.beginTransaction();
                    for (int partition = 0; partition < 2; partition++) {
                        producer.send(new ProducerRecord<>(topic, partition, null, number + "-" + partition));
                    }
                    producer.sendOffsetsToTransaction(
                        Map.of(first, new OffsetAndMetadata(number + 1)), consumer.groupMetadata());
                    if (number % 3 == 2) {
                        producer.flush();
                        producer.abortTransaction();
                        System.out.println("aborted " + number);
                    } else {
                        producer.commitTransaction();
                        System.out.println("committed " + number);
                    }
                }
            }
            System.out.println("position " + consumer.committed(java.util.Set.of(first)).get(first).offset());
            List<TopicPartition> both = List.of(first, new TopicPartition(topic, 1));
            consumer.assign(both);
            consumer.seekToBeginning(both);
            int missing = 2 * (count - count / 3);
            while (missing > 0) {
                for (var record : consumer.poll(Duration.ofSeconds(1))) {
                    System.out.println("read " + record.value());
                    missing--;
                }
            }
        }
    }
}
