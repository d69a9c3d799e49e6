import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's own command line tools one after the other in one JVM, whose start is most of what a tool costs.
 *
 * <p>A request is a line: CLASS, standard input and arguments, separated by tabs, all but the class in base64. The
 * answer is a line: exit status, a tab, what the tool printed (both streams) in base64.
 */
public class ToolServer {
    private static final class Exited extends RuntimeException {
        final int status;

        Exited(int status) {
            super(null, null, false, false);
            this.status = status;
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((status, message) -> { throw new Exited(status); });
        Exit.setHaltProcedure((status, message) -> { throw new Exited(status); });
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split("\t", -1);
            String[] tool = Arrays.stream(words).skip(2).map(ToolServer::decoded).toArray(String[]::new);
            var printed = new ByteArrayOutputStream();
            var stream = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(stream);
            System.setErr(stream);
            System.setIn(new ByteArrayInputStream(decoded(words[1]).getBytes(StandardCharsets.UTF_8)));
            int status = scala.Console$.MODULE$.withOut(stream, () -> run(words[0], tool));
            stream.flush();
            answers.println(status + "\t" + Base64.getEncoder().encodeToString(printed.toByteArray()));
            answers.flush();
        }
    }

    private static int run(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException thrown) {
            if (thrown.getCause() instanceof Exited exited) return exited.status;
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException wrong) {
            wrong.printStackTrace();
            return 1;
        }
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
