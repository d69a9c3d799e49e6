import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Transactions with the unmodified Java clients; each mode prints one JSON object.
 *
 *   produce BOOTSTRAP TOPIC SECONDS TRANSACTION_MS      as many records as possible, a commit each so many milliseconds
 *   fill    BOOTSTRAP TOPIC RECORDS PER_TRANSACTION     the same log for every broker: each tenth transaction is aborted
 *   consume BOOTSTRAP TOPIC RECORDS                     so many records, of committed transactions only
 */
public class TransactionProbe {
    private static final int RECORD_BYTES = 1024;
    private static final int WARM_UP_S = 3;
    private static final int ABORTED_EACH = 10;
    /** Records that are written before an end may begin: an end that follows 32 MB of them says nothing of the end. */
    private static final int BUFFER_BYTES = 1 << 20;

    public static void main(String[] args) {
        String bootstrap = args[1];
        String topic = args[2];
        switch (args[0]) {
            case "produce" -> produce(bootstrap, topic, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            case "fill" -> fill(bootstrap, topic, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            case "consume" -> consume(bootstrap, topic, Integer.parseInt(args[3]));
            default -> throw new IllegalArgumentException("no mode " + args[0]);
        }
    }

    /** An end is timed from when all records are acknowledged: the rest of commitTransaction is the broker's. */
    private static void produce(String bootstrap, String topic, int seconds, int transactionMs) {
        byte[] value = new byte[RECORD_BYTES];
        long all = 0;
        long counted = 0;
        double[] ends = new double[1024];
        int ended = 0;
        double measured;
        try (var producer = producer(bootstrap, topic)) {
            producer.initTransactions();
            long start = System.nanoTime() + WARM_UP_S * 1_000_000_000L;
            long now = System.nanoTime();
            while (now - start < seconds * 1_000_000_000L) {
                boolean warm = now >= start;
                if (warm && ended == 0) start = now;
                long until = now + transactionMs * 1_000_000L;
                long records = 0;
                producer.beginTransaction();
                do {
                    producer.send(new ProducerRecord<>(topic, value));
                    records++;
                } while (System.nanoTime() < until);
                producer.flush();
                long asked = System.nanoTime();
                producer.commitTransaction();
                now = System.nanoTime();
                all += records;
                if (warm) {
                    counted += records;
                    if (ended == ends.length) ends = Arrays.copyOf(ends, 2 * ended);
                    ends[ended++] = (now - asked) / 1e6;
                }
            }
            measured = (now - start) / 1e9;
        }
        Arrays.sort(ends, 0, ended);
        Probe.print("{\"records_per_s\": %.0f, \"bytes\": %d, \"commit_p50_ms\": %.3f, \"commit_p99_ms\": %.3f, \"commits\": %d}",
            counted / measured, all * RECORD_BYTES, ends[ended / 2], ends[ended * 99 / 100], ended);
    }

    private static void fill(String bootstrap, String topic, int records, int perTransaction) {
        byte[] value = new byte[RECORD_BYTES];
        long committed = 0;
        try (var producer = producer(bootstrap, topic)) {
            producer.initTransactions();
            for (int number = 1; committed < records; number++) {
                producer.beginTransaction();
                for (int i = 0; i < perTransaction; i++) producer.send(new ProducerRecord<>(topic, value));
                if (number % ABORTED_EACH == 0) {
                    producer.flush(); // an abort would drop what isn't sent yet
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    committed += perTransaction;
                }
            }
        }
        Probe.print("{\"committed\": %d}", committed);
    }

    private static void consume(String bootstrap, String topic, int records) {
        try (var consumer = Probe.consumer(bootstrap, Map.of("isolation.level", "read_committed"))) {
            List<TopicPartition> partitions = Probe.partitionsOf(consumer, topic);
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long count = Probe.readAndPrint(consumer, records);
            if (count > records) throw new IllegalStateException(count + " records, of which " + records + " are committed");
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String topic) {
        return Probe.producer(bootstrap, Map.of("transactional.id", topic, "acks", "all", "batch.size", 16384, "linger.ms", 0,
            "buffer.memory", BUFFER_BYTES));
    }
}
