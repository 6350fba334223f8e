import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/** Runs the client-side assignors of Kafka. */
final class Assignors {
    private Assignors() {
    }

    /**
     * Returns the assignment of a group as lines `ID topic:partition...`.
     *
     * The question has lines of words, separated by tabs. `assignor NAME`. `topic NAME RACKS...`:
     * by partition, the racks of its replicas, joined by commas (`-`: no rack). `member ID INSTANCE
     * RACK GENERATION USER-DATA TOPICS OWNED`: a missing value is `-`, user data is hexadecimal,
     * topics are joined by commas, and owned partitions are `topic:partition`, joined by commas.
     */
    static ByteBuffer assign(ByteBuffer question) {
        String text = StandardCharsets.UTF_8.decode(question).toString();
        ConsumerPartitionAssignor assignor = null;
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Node> nodes = new HashMap<>();
        Map<String, Subscription> members = new LinkedHashMap<>();
        for (String line : text.split("\n")) {
            String[] words = line.split("\t");
            switch (words[0]) {
                case "assignor" -> assignor = called(words[1]);
                case "topic" -> {
                    for (int number = 2; number < words.length; number++) {
                        Node[] replicas = replicas(words[number], nodes);
                        partitions.add(new PartitionInfo(
                            words[1], number - 2, replicas[0], replicas, replicas));
                    }
                }
                default -> members.put(words[1], member(words));
            }
        }
        Set<Node> all = new HashSet<>(nodes.values());
        Cluster cluster = new Cluster("cluster", all, partitions, Set.of(), Set.of());
        Map<String, Subscription> hashed = new HashMap<>(members);
        Map<String, Assignment> found =
            assignor.assign(cluster, new GroupSubscription(hashed)).groupAssignment();
        StringBuilder answer = new StringBuilder();
        for (String id : members.keySet()) {
            answer.append(id);
            for (TopicPartition place : found.get(id).partitions()) {
                answer.append('\t').append(place.topic()).append(':').append(place.partition());
            }
            answer.append('\n');
        }
        byte[] bytes = answer.toString().getBytes(StandardCharsets.UTF_8);
        int taken = question.limit();
        return ByteBuffer.allocate(Integer.BYTES + bytes.length).putInt(taken).put(bytes).flip();
    }

    private static ConsumerPartitionAssignor called(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** Returns a node for each rack; for `-`, a node without a rack. */
    private static Node[] replicas(String racks, Map<String, Node> nodes) {
        List<Node> found = new ArrayList<>();
        for (String rack : racks.split(",")) {
            found.add(nodes.computeIfAbsent(rack, each -> new Node(
                nodes.size(), "host", 9092, each.equals("-") ? null : each)));
        }
        return found.toArray(new Node[0]);
    }

    private static Subscription member(String[] words) {
        List<TopicPartition> owned = new ArrayList<>();
        for (String place : parts(words[7])) {
            int colon = place.lastIndexOf(':');
            owned.add(new TopicPartition(
                place.substring(0, colon), Integer.parseInt(place.substring(colon + 1))));
        }
        Optional<String> rack = words[3].equals("-") ? Optional.empty() : Optional.of(words[3]);
        Subscription member = new Subscription(
            parts(words[6]), userData(words[5]), owned, Integer.parseInt(words[4]), rack);
        if (!words[2].equals("-")) {
            member.setGroupInstanceId(Optional.of(words[2]));
        }
        return member;
    }

    private static List<String> parts(String text) {
        return text.equals("-") ? List.of() : List.of(text.split(","));
    }

    private static ByteBuffer userData(String text) {
        if (text.equals("-")) {
            return null;
        }
        byte[] bytes = new byte[text.length() / 2];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] = (byte) Integer.parseInt(text.substring(2 * at, 2 * at + 2), 16);
        }
        return ByteBuffer.wrap(bytes);
    }
}
