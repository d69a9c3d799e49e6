import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads lines of "class version json" and prints, for each, the bytes that Apache Kafka writes for it, in hex. */
public class KafkaWire {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] parts = line.split(" ", 3);
            short version = Short.parseShort(parts[1]);
            Class<?> converter = Class.forName("org.apache.kafka.common.message." + parts[0] + "JsonConverter");
            Message message = (Message) converter.getMethod("read", JsonNode.class, short.class)
                .invoke(null, mapper.readTree(parts[2]), version);
            ObjectSerializationCache sizes = new ObjectSerializationCache();
            ByteBuffer bytes = ByteBuffer.allocate(message.size(sizes, version));
            message.write(new ByteBufferAccessor(bytes), sizes, version);
            System.out.println(HexFormat.of().formatHex(bytes.array(), 0, bytes.position()));
        }
    }
}
