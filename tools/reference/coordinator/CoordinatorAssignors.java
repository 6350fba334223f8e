import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.generated.ConsumerGroupTargetAssignmentMemberValue;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Runs the server-side assignors of Kafka's group coordinator, those of Kafka 4.4. */
final class CoordinatorAssignors {
    private CoordinatorAssignors() {
    }

    private static final class Group implements SubscribedTopicDescriber {
        private final PartitionAssignor assignor;
        private final SubscriptionType type;
        private final Map<Uuid, Integer> topics = new HashMap<>();
        private final Map<Uuid, Set<Integer>> assignable = new HashMap<>();
        private final Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        private final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();

        private Group(String assignor, boolean alike) {
            this.assignor = switch (assignor) {
                case "range" -> new RangeAssignor();
                case "simple" -> new SimpleAssignor();
                default -> new UniformAssignor();
            };
            this.type = alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }

        @Override
        public int numPartitions(Uuid topic) {
            return topics.getOrDefault(topic, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }

        private void addTopic(String[] words) {
            Uuid topic = Uuid.fromString(words[1]);
            topics.put(topic, Integer.valueOf(words[2]));
            if (words.length > 3) {
                Set<Integer> partitions = new HashSet<>();
                for (String partition : words[3].split(",")) {
                    if (!partition.isEmpty()) {
                        partitions.add(Integer.valueOf(partition));
                    }
                }
                assignable.put(topic, partitions);
            }
        }

        private void add(String[] words) {
            Set<Uuid> subscribed = new HashSet<>();
            for (String topic : words[3].split(",")) {
                if (!topic.isEmpty()) {
                    subscribed.add(Uuid.fromString(topic));
                }
            }
            var assigned = new ConsumerGroupTargetAssignmentMemberValue();
            for (int at = 4; at < words.length; at++) {
                String[] place = words[at].split(":", -1);
                Uuid topic = Uuid.fromString(place[0]);
                List<Integer> partitions = new ArrayList<>();
                for (String partition : place[1].split(",")) {
                    if (partition.isEmpty()) {
                        continue;
                    }
                    partitions.add(Integer.valueOf(partition));
                    owners.computeIfAbsent(topic, it -> new HashMap<>())
                        .put(Integer.valueOf(partition), words[1]);
                }
                assigned.topicPartitions().add(
                    new ConsumerGroupTargetAssignmentMemberValue.TopicPartition()
                        .setTopicId(topic).setPartitions(partitions));
            }
            Optional<String> instance =
                words[2].equals("-") ? Optional.empty() : Optional.of(words[2]);
            members.put(words[1], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed, Assignment.fromRecord(assigned)));
        }

        private String decide() {
            var spec = new GroupSpecImpl(
                Collections.unmodifiableMap(members), type, owners,
                assignable.isEmpty() ? Optional.empty() : Optional.of(assignable));
            StringBuilder said = new StringBuilder();
            assignor.assign(spec, this).members().forEach((member, its) ->
                its.partitions().forEach((topic, partitions) -> {
                    if (partitions.isEmpty()) {
                        said.append(member).append(' ').append(topic).append(" -\t");
                    }
                    for (int partition : new TreeSet<>(partitions)) {
                        said.append(member).append(' ').append(topic).append(' ')
                            .append(partition).append('\t');
                    }
                }));
            return said.toString();
        }
    }

    /**
     * Reads lines of words, separated by tabs.
     *
     * `group ASSIGNOR ALIKE` begins a group; ALIKE is 1 if all members have equal subscriptions.
     * `topic ID PARTITIONS ASSIGNABLE` has the number of partitions, and, for a share group, the
     * partitions that may be assigned, joined by commas. `member ID INSTANCE TOPICS
     * TOPIC:PARTITIONS...` has subscribed topics and assigned partitions, joined by commas;
     * INSTANCE may be `-`. After `decide` the program answers with a line of `MEMBER TOPIC
     * PARTITION`, a tab after each partition. PARTITION is `-` if a topic has no partitions.
     */
    public static void main(String[] arguments) throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        Group group = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            switch (words[0]) {
                case "group" -> group = new Group(words[1], words[2].equals("1"));
                case "topic" -> group.addTopic(words);
                case "member" -> group.add(words);
                default -> answers.append(group.decide()).append('\n');
            }
        }
        System.out.print(answers);
    }
}
