import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.UUID;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.ShortSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.serialization.UUIDSerializer;

/** Serializes keys and values with Kafka's own serializers. */
final class Serializers {
    private Serializers() {
    }

    /**
     * Returns the bytes of each value in hex, a line each.
     *
     * Each line of the question is `kind value`; the value of a `string` is its UTF-8 in hex.
     */
    static ByteBuffer serialize(ByteBuffer question) {
        String[] lines = StandardCharsets.UTF_8.decode(question).toString().split("\n");
        StringBuilder answer = new StringBuilder();
        for (String line : lines) {
            String[] words = line.split(" ", -1);
            answer.append(HexFormat.of().formatHex(bytesOf(words[0], words[1]))).append('\n');
        }
        byte[] text = answer.toString().getBytes(StandardCharsets.UTF_8);
        int taken = question.limit();
        return ByteBuffer.allocate(Integer.BYTES + text.length).putInt(taken).put(text).flip();
    }

    private static byte[] bytesOf(String kind, String value) {
        return switch (kind) {
            case "short" -> new ShortSerializer().serialize("t", Short.valueOf(value));
            case "int" -> new IntegerSerializer().serialize("t", Integer.valueOf(value));
            case "long" -> new LongSerializer().serialize("t", Long.valueOf(value));
            case "uuid" -> new UUIDSerializer().serialize("t", UUID.fromString(value));
            case "string" -> new StringSerializer().serialize(
                "t", new String(HexFormat.of().parseHex(value), StandardCharsets.UTF_8));
            default -> throw new IllegalArgumentException(kind);
        };
    }
}
