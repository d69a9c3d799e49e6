import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Counts words, with a topic to repartition by word and a changelog of the counts. Whenever its own counts change, it
 * prints them as one line: word=count ...
 *
 * Arguments: BOOTSTRAP TOPIC APPLICATION_ID STATE_DIRECTORY [PROCESSING_GUARANTEE]
 */
public class WordCount {
    public static void main(String[] arguments) throws InterruptedException {
        Properties settings = new Properties();
        settings.putAll(Map.of(
            "bootstrap.servers", arguments[0],
            "application.id", arguments[2],
            "state.dir", arguments[3],
            "replication.factor", "3",
            "commit.interval.ms", "200",
            "repartition.purge.interval.ms", "500",
            "auto.offset.reset", "earliest",
            "default.key.serde", Serdes.StringSerde.class,
            "default.value.serde", Serdes.StringSerde.class));
        if (arguments.length > 4) {
            settings.put("processing.guarantee", arguments[4]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[1])
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
        for (String printed = ""; ; Thread.sleep(100)) {
            String now = counts(streams);
            if (!now.equals(printed)) {
                System.out.println(now);
                printed = now;
            }
        }
    }

    private static String counts(KafkaStreams streams) {
        TreeMap<String, Long> counts = new TreeMap<>();
        try {
            var store = StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.<String, Long>keyValueStore());
            try (KeyValueIterator<String, Long> all = streams.store(store).all()) {
                all.forEachRemaining(entry -> counts.put(entry.key, entry.value));
            }
        } catch (InvalidStateStoreException | IllegalStateException moving) {
            return "";
        }
        return counts.toString().replaceAll("[{},]", "");
    }
}
