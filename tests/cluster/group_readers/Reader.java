import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** BOOTSTRAP TOPIC GROUP ASSIGNOR INSTANCE|-: Kafka's own consumer as one of the readers of test_groups_of_all_clients. */
public class Reader {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", args[0], "group.id", args[2],
            "partition.assignment.strategy", ASSIGNORS.get(args[3]), "enable.auto.commit", false,
            "auto.offset.reset", "earliest", "heartbeat.interval.ms", 300, "session.timeout.ms", 6000));
        if (!args[4].equals("-")) settings.put("group.instance.id", args[4]);
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread reader = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                reader.join();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            consumer.subscribe(List.of(args[1]));
            while (true) read(consumer);
        } catch (WakeupException told) {
            consumer.close();
        }
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer) {
        var records = consumer.poll(Duration.ofMillis(200));
        if (records.isEmpty()) return;
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            tell("R", record.partition(), record.offset());
            positions.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        try {
            consumer.commitSync(positions);
            positions.forEach((partition, position) -> tell("C", partition.partition(), position.offset()));
        } catch (CommitFailedException | RebalanceInProgressException | TimeoutException lost) {
            System.err.println(lost);
        }
    }

    private static void tell(String what, int partition, long offset) {
        Instant now = Instant.now();
        System.out.println(what + " " + partition + " " + offset + " " + (now.getEpochSecond() * 1000 + now.getNano() / 1_000_000));
    }
}
