import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.regex.Pattern;

/** Matches texts with java.util.regex, and with re2j, which Kafka's brokers use since 4.0. */
final class Regexes {
    private Regexes() {
    }

    /**
     * Returns a digit for each text: 1 if the expression matches, else 0.
     *
     * A question has words, separated by tabs: `java` or `re2j`, the expression, and the texts;
     * these are hexadecimal UTF-8. java.util.regex searches the text; re2j matches the whole text.
     * Refuses an invalid expression.
     */
    static ByteBuffer match(ByteBuffer question) throws Reference.Refusal {
        int taken = question.limit();
        String[] words = StandardCharsets.UTF_8.decode(question).toString().split("\t", -1);
        StringBuilder answer = new StringBuilder();
        try {
            String expression = text(words[1]);
            if (words[0].equals("java")) {
                Pattern pattern = Pattern.compile(expression);
                for (int number = 2; number < words.length; number++) {
                    answer.append(pattern.matcher(text(words[number])).find() ? '1' : '0');
                }
            } else {
                // By reflection, because Kafka 3.9 has no re2j.
                Class<?> kind = Class.forName("com.google.re2j.Pattern");
                Object pattern = kind.getMethod("compile", String.class).invoke(null, expression);
                Method matches = kind.getMethod("matches", String.class);
                for (int number = 2; number < words.length; number++) {
                    boolean found = (Boolean) matches.invoke(pattern, text(words[number]));
                    answer.append(found ? '1' : '0');
                }
            }
        } catch (InvocationTargetException fault) {
            throw new Reference.Refusal(fault.getCause());
        } catch (ReflectiveOperationException fault) {
            throw new AssertionError(fault);
        } catch (RuntimeException fault) {
            throw new Reference.Refusal(fault);
        }
        byte[] digits = answer.toString().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(Integer.BYTES + digits.length).putInt(taken).put(digits).flip();
    }

    private static String text(String hexadecimal) {
        return new String(HexFormat.of().parseHex(hexadecimal), StandardCharsets.UTF_8);
    }
}
