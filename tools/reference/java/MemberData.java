import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;

/** Encodes and decodes the data that group members exchange, with Kafka's ConsumerProtocol. */
final class MemberData {
    private MemberData() {
    }

    /**
     * Encodes or decodes a subscription or an assignment.
     *
     * A question has words, separated by tabs; a missing value is `-`. The answers to `subscription
     * VERSION RACK GENERATION USER-DATA TOPICS OWNED` and `assignment VERSION USER-DATA PARTITIONS`
     * are the encoded bytes; version `-` is Kafka's default. The answers to `read-subscription
     * BYTES` and `read-assignment BYTES` are the words from RACK or USER-DATA on. Bytes are
     * hexadecimal.
     */
    static ByteBuffer answer(ByteBuffer question) throws Reference.Refusal {
        int taken = question.limit();
        String[] words = StandardCharsets.UTF_8.decode(question).toString().split("\t");
        byte[] bytes;
        try {
            bytes = switch (words[0]) {
                case "subscription" -> bytes(written(words));
                case "assignment" -> bytes(assignment(words));
                case "read-subscription" -> told(
                    ConsumerProtocol.deserializeSubscription(buffer(words[1])));
                case "read-assignment" -> told(
                    ConsumerProtocol.deserializeAssignment(buffer(words[1])));
                default -> throw new AssertionError(words[0]);
            };
        } catch (RuntimeException fault) {
            // A SchemaException if Kafka checks the remaining bytes; otherwise other exceptions.
            throw new Reference.Refusal(fault);
        }
        return ByteBuffer.allocate(Integer.BYTES + bytes.length).putInt(taken).put(bytes).flip();
    }

    private static ByteBuffer written(String[] words) {
        Optional<String> rack = words[2].equals("-") ? Optional.empty() : Optional.of(words[2]);
        Subscription told = new Subscription(
            texts(words[5]), buffer(words[4]), places(words[6]), Integer.parseInt(words[3]), rack);
        return words[1].equals("-")
            ? ConsumerProtocol.serializeSubscription(told)
            : ConsumerProtocol.serializeSubscription(told, Short.parseShort(words[1]));
    }

    private static ByteBuffer assignment(String[] words) {
        Assignment told = new Assignment(places(words[3]), buffer(words[2]));
        return words[1].equals("-")
            ? ConsumerProtocol.serializeAssignment(told)
            : ConsumerProtocol.serializeAssignment(told, Short.parseShort(words[1]));
    }

    private static byte[] told(Subscription told) {
        return String.join("\t", told.rackId().orElse("-"), told.generationId().orElse(-1).toString(),
            hex(told.userData()), told.topics().isEmpty() ? "-" : String.join(",", told.topics()),
            named(told.ownedPartitions())).getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] told(Assignment told) {
        return (hex(told.userData()) + "\t" + named(told.partitions()))
            .getBytes(StandardCharsets.UTF_8);
    }

    private static String named(List<TopicPartition> places) {
        return places.isEmpty() ? "-" : places.stream()
            .map(place -> place.topic() + ":" + place.partition()).collect(Collectors.joining(","));
    }

    private static List<String> texts(String text) {
        return text.equals("-") ? List.of() : List.of(text.split(","));
    }

    private static List<TopicPartition> places(String text) {
        List<TopicPartition> found = new ArrayList<>();
        for (String place : texts(text)) {
            int colon = place.lastIndexOf(':');
            found.add(new TopicPartition(
                place.substring(0, colon), Integer.parseInt(place.substring(colon + 1))));
        }
        return found;
    }

    private static ByteBuffer buffer(String hex) {
        return hex.equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(hex));
    }

    private static String hex(ByteBuffer data) {
        return data == null ? "-" : HexFormat.of().formatHex(bytes(data));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] found = new byte[buffer.remaining()];
        buffer.duplicate().get(found);
        return found;
    }
}
