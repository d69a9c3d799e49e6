import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What Kafka's own tools do not measure, with the unmodified Java clients; each mode prints one JSON object.
 * Settings of all clients may be in a file that the property client.config names.
 *
 *   single  BOOTSTRAP TOPIC PRODUCERS IN_FLIGHT SECONDS ACKS   one record per request, each producer on its own partition
 *   latency BOOTSTRAP TOPIC RECORDS ACKS                  send, acknowledged, received: warm, one at a time
 *   consume BOOTSTRAP TOPIC RECORDS FROM_OFFSET           all partitions assigned, no group
 *   join    BOOTSTRAP TOPIC CONSUMERS GROUP               a group from its first poll until each has as many partitions
 *   commit  BOOTSTRAP TOPIC CONSUMERS SECONDS             commitSync of one position, again and again, each in its own group
 */
public class Probe {
    private static final int RECORD_BYTES = 100;
    private static volatile boolean over;

    public static void main(String[] args) throws Exception {
        String bootstrap = args[1];
        String topic = args[2];
        switch (args[0]) {
            case "single" -> single(bootstrap, topic, Integer.parseInt(args[3]), Integer.parseInt(args[4]), Integer.parseInt(args[5]), args[6]);
            case "latency" -> latency(bootstrap, topic, Integer.parseInt(args[3]), args[4]);
            case "consume" -> consume(bootstrap, topic, Long.parseLong(args[3]), Long.parseLong(args[4]));
            case "join" -> join(bootstrap, topic, Integer.parseInt(args[3]), args[4]);
            case "commit" -> commit(bootstrap, topic, Integer.parseInt(args[3]), Integer.parseInt(args[4]));
            default -> throw new IllegalArgumentException("no mode " + args[0]);
        }
    }

    private static void single(String bootstrap, String topic, int producers, int inFlight, int seconds, String acks) throws Exception {
        LongAdder acknowledged = new LongAdder();
        LongAdder failed = new LongAdder();
        List<Thread> senders = new ArrayList<>();
        for (int partition = 0; partition < producers; partition++) {
            senders.add(sender(bootstrap, topic, partition, inFlight, acks, acknowledged, failed));
        }
        senders.forEach(Thread::start);
        while (acknowledged.sum() < 100L * producers && failed.sum() == 0) Thread.sleep(10);
        Thread.sleep(2000);
        long before = acknowledged.sum();
        long start = System.nanoTime();
        Thread.sleep(seconds * 1000L);
        double rate = (acknowledged.sum() - before) / ((System.nanoTime() - start) / 1e9);
        over = true;
        for (Thread sender : senders) sender.join();
        if (failed.sum() > 0) throw new IllegalStateException(failed.sum() + " sends failed");
        print("{\"requests_per_s\": %.0f}", rate);
    }

    /** Keeps twice the requests in flight ready, so that the connection is never without its next one. */
    private static Thread sender(String bootstrap, String topic, int partition, int inFlight, String acks, LongAdder acknowledged, LongAdder failed) {
        return new Thread(() -> {
            Semaphore open = new Semaphore(2 * inFlight);
            byte[] value = new byte[RECORD_BYTES];
            try (var producer = producer(bootstrap, Map.of("acks", acks, "linger.ms", 0, "batch.size", 0, "enable.idempotence", false,
                    "max.in.flight.requests.per.connection", inFlight))) {
                while (!over) {
                    open.acquireUninterruptibly();
                    producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                        (error == null ? acknowledged : failed).increment();
                        open.release();
                    });
                }
            }
        });
    }

    private static void latency(String bootstrap, String topic, int records, String acks) throws Exception {
        int warmUp = Math.max(1000, records / 4);
        double[] acknowledged = new double[records];
        double[] received = new double[records];
        try (var producer = producer(bootstrap, Map.of("acks", acks, "linger.ms", 0)); var consumer = consumer(bootstrap)) {
            List<TopicPartition> partitions = partitionsOf(consumer, topic);
            consumer.assign(partitions);
            consumer.seekToEnd(partitions);
            partitions.forEach(consumer::position);
            for (int i = -warmUp; i < records; i++) {
                long start = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, new byte[RECORD_BYTES])).get();
                double untilAcknowledged = (System.nanoTime() - start) / 1e6;
                while (consumer.poll(Duration.ofSeconds(5)).isEmpty()) {
                    if (System.nanoTime() - start > 10_000_000_000L) throw new IllegalStateException("a record was not delivered in 10 s");
                }
                if (i >= 0) {
                    acknowledged[i] = untilAcknowledged;
                    received[i] = (System.nanoTime() - start) / 1e6;
                }
            }
        }
        Arrays.sort(acknowledged);
        Arrays.sort(received);
        print("{\"p50_ms\": %.3f, \"p99_ms\": %.3f, \"ack_p50_ms\": %.3f, \"ack_p99_ms\": %.3f}", received[records / 2],
            received[records * 99 / 100], acknowledged[records / 2], acknowledged[records * 99 / 100]);
    }

    private static void consume(String bootstrap, String topic, long records, long fromOffset) {
        try (var consumer = consumer(bootstrap)) {
            List<TopicPartition> partitions = partitionsOf(consumer, topic);
            consumer.assign(partitions);
            partitions.forEach(partition -> consumer.seek(partition, fromOffset));
            readAndPrint(consumer, records);
        }
    }

    /** Reads at least so many records from the assigned partitions; returns how many it was given. */
    static long readAndPrint(KafkaConsumer<byte[], byte[]> consumer, long records) {
        long count = 0;
        long bytes = 0;
        long start = System.nanoTime();
        while (count < records) {
            var batch = consumer.poll(Duration.ofSeconds(10));
            if (batch.isEmpty()) throw new IllegalStateException(count + " of " + records + " records, then nothing for 10 s");
            count += batch.count();
            for (var record : batch) bytes += record.serializedValueSize();
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        print("{\"records_per_s\": %.0f, \"bytes\": %d}", count / seconds, bytes);
        return count;
    }

    /** Members notice a rebalance by their heartbeats, so those are frequent: the broker's part is what is timed. */
    private static void join(String bootstrap, String topic, int consumers, String group) throws Exception {
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        for (int i = 0; i < consumers; i++) {
            members.add(consumer(bootstrap, Map.of("group.id", group, "heartbeat.interval.ms", 100, "fetch.max.wait.ms", 100)));
        }
        int partitions = partitionsOf(members.get(0), topic).size();
        int[] generations = new int[consumers];
        int[] parts = new int[consumers];
        CountDownLatch ready = new CountDownLatch(1);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < consumers; i++) {
            int number = i;
            threads.add(new Thread(() -> {
                try (var member = members.get(number)) {
                    member.subscribe(List.of(topic));
                    ready.await();
                    while (!over) {
                        member.poll(Duration.ofMillis(20));
                        synchronized (parts) {
                            generations[number] = member.groupMetadata().generationId();
                            parts[number] = member.assignment().size();
                        }
                    }
                } catch (InterruptedException stopped) {
                    Thread.currentThread().interrupt();
                }
            }));
        }
        threads.forEach(Thread::start);
        long start = System.nanoTime();
        ready.countDown();
        while (!stable(generations, parts, partitions / consumers)) {
            if (System.nanoTime() - start > 120_000_000_000L) throw new IllegalStateException("not stable after 120 s");
            Thread.sleep(2);
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        over = true;
        for (Thread thread : threads) thread.join();
        print("{\"stable_s\": %.4f}", seconds);
    }

    private static boolean stable(int[] generations, int[] parts, int each) {
        synchronized (parts) {
            return Arrays.stream(parts).allMatch(part -> part == each) && Arrays.stream(generations).distinct().count() == 1;
        }
    }

    private static void commit(String bootstrap, String topic, int consumers, int seconds) throws Exception {
        LongAdder committed = new LongAdder();
        TopicPartition partition = new TopicPartition(topic, 0);
        List<Thread> committers = new ArrayList<>();
        for (int i = 0; i < consumers; i++) {
            String group = "committer-" + i;
            committers.add(new Thread(() -> {
                try (var consumer = consumer(bootstrap, Map.of("group.id", group, "enable.auto.commit", false))) {
                    consumer.assign(List.of(partition));
                    for (long offset = 0; !over; offset++) {
                        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(offset)));
                        committed.increment();
                    }
                }
            }));
        }
        committers.forEach(Thread::start);
        while (committed.sum() < 500L * consumers) {
            if (committers.stream().noneMatch(Thread::isAlive)) throw new IllegalStateException("no commit succeeds");
            Thread.sleep(10);
        }
        Thread.sleep(2000);
        long before = committed.sum();
        long start = System.nanoTime();
        Thread.sleep(seconds * 1000L);
        double rate = (committed.sum() - before) / ((System.nanoTime() - start) / 1e9);
        over = true;
        for (Thread committer : committers) committer.join();
        print("{\"commits_per_s\": %.0f}", rate);
    }

    static List<TopicPartition> partitionsOf(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        return consumer.partitionsFor(topic).stream().map(info -> new TopicPartition(topic, info.partition())).toList();
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, Map<String, Object> settings) {
        Map<String, Object> all = withConfig(settings);
        all.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String bootstrap) {
        return consumer(bootstrap, Map.of());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, Map<String, Object> settings) {
        Map<String, Object> all = withConfig(settings);
        all.put("bootstrap.servers", bootstrap);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Map<String, Object> withConfig(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>();
        String file = System.getProperty("client.config");
        if (file != null) {
            Properties read = new Properties();
            try (var reader = Files.newBufferedReader(Path.of(file))) {
                read.load(reader);
            } catch (IOException unreadable) {
                throw new UncheckedIOException(unreadable);
            }
            read.forEach((key, value) -> all.put((String) key, value));
        }
        all.putAll(settings);
        return all;
    }

    static void print(String format, Object... values) {
        System.out.println(String.format(Locale.ROOT, format, values));
    }
}
