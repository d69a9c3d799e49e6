import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
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
 * answer is a line: exit status, what the tool printed on both streams, and what on standard output alone, in base64.
 */
public class ToolServer {
    /** What tools print of it, if they catch everything, is taken out of their output. */
    private static final String MARK = "<exited>";

    /** Thrown where a tool would end the JVM. */
    private static final class Exited extends RuntimeException {
        Exited() {
            super(MARK, null, false, false);
        }

        @Override
        public String toString() {
            return MARK;
        }
    }

    /** Writes to both. */
    private static final class Tee extends OutputStream {
        private final OutputStream first;
        private final OutputStream second;

        Tee(OutputStream first, OutputStream second) {
            this.first = first;
            this.second = second;
        }

        @Override
        public void write(int octet) throws IOException {
            first.write(octet);
            second.write(octet);
        }

        @Override
        public void write(byte[] bytes, int from, int length) throws IOException {
            first.write(bytes, from, length);
            second.write(bytes, from, length);
        }
    }

    private static Integer status;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split("\t", -1);
            String[] tool = Arrays.stream(words).skip(2).map(ToolServer::decoded).toArray(String[]::new);
            var printed = new ByteArrayOutputStream();
            var output = new ByteArrayOutputStream();
            var out = new PrintStream(new Tee(printed, output), true, StandardCharsets.UTF_8);
            System.setOut(out);
            System.setErr(new PrintStream(printed, true, StandardCharsets.UTF_8));
            System.setIn(new ByteArrayInputStream(decoded(words[1]).getBytes(StandardCharsets.UTF_8)));
            status = null;
            scala.Console$.MODULE$.withOut(out, () -> run(words[0], tool));
            answers.println((status == null ? 0 : status) + "\t" + encoded(printed) + "\t" + encoded(output));
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // whatever the tools have left running
    }

    /** The first status counts: a tool that catches what is thrown here may try to exit again. */
    private static void exit(int code) {
        if (status == null) status = code;
        throw new Exited();
    }

    private static Object run(String name, String[] arguments) {
        try {
            Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            if (status == null) status = 1;
            if (!(thrown.getCause() instanceof Exited)) thrown.getCause().printStackTrace();
        } catch (ReflectiveOperationException wrong) {
            throw new IllegalArgumentException(wrong);
        }
        return null;
    }

    private static String encoded(ByteArrayOutputStream printed) {
        String text = printed.toString(StandardCharsets.UTF_8).replace(MARK + "\n", "");
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String decoded(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
