import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/** Runs main classes one after the other: a line of input has the class and its arguments. */
public final class ConsoleRunner {
    private static final int FAILED = 99;

    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
    }

    private static Integer code;

    private static void exit(int status, String message) {
        if (code == null) {
            code = status;
        }
        throw new Exited();
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream out = System.out;
        Exit.setExitProcedure(ConsoleRunner::exit);
        Exit.setHaltProcedure(ConsoleRunner::exit);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            ByteArrayOutputStream errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, "UTF-8"));
            System.setErr(new PrintStream(errors, true, "UTF-8"));
            code = null;
            try {
                String[] arguments = Arrays.copyOfRange(words, 1, words.length);
                Class.forName(words[0]).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments);
            } catch (ReflectiveOperationException error) {
                Throwable cause = error.getCause() == null ? error : error.getCause();
                if (!(cause instanceof Exited)) {
                    cause.printStackTrace();
                    if (code == null) {
                        code = FAILED;
                    }
                }
            }
            Base64.Encoder encoder = Base64.getEncoder();
            out.println((code == null ? 0 : code)
                + "\t" + encoder.encodeToString(printed.toByteArray())
                + "\t" + encoder.encodeToString(errors.toByteArray()));
            out.flush();
        }
    }
}
