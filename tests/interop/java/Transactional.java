import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs Java's transactional producer: {@code BOOTSTRAP COMMAND ...}; prints one line of JSON.
 *
 * <p>{@code test_transactional_peers} describes the commands, which all peers have. The group uses
 * the protocol in the system property {@code protocol}.
 */
public final class Transactional {
    private static final Duration WAIT = Duration.ofSeconds(1);
    private static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        switch (arguments[1]) {
            case "scenes" -> System.out.println(scenes(arguments[2], arguments[3]));
            case "transform" ->
                    System.out.println(
                            transform(arguments[2], arguments[3], Integer.parseInt(arguments[4])));
            case "read" -> System.out.println(read(List.of(arguments).subList(2, arguments.length)));
            case "init" -> System.out.println(init());
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static KafkaProducer<String, String> producer(String transactionalId) {
        StringSerializer strings = new StringSerializer();
        return new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap, "transactional.id", transactionalId),
                strings,
                strings);
    }

    private static KafkaConsumer<String, String> consumer(String group) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", 200);
        if (group != null) {
            settings.put("group.id", group);
            settings.put("group.protocol", System.getProperty("protocol", "classic"));
        }
        StringDeserializer strings = new StringDeserializer();
        return new KafkaConsumer<>(settings, strings, strings);
    }

    private static void send(KafkaProducer<String, String> producer, String topic, String value) {
        for (int partition = 0; partition < 4; partition++) {
            producer.send(new ProducerRecord<>(topic, partition, null, value));
        }
        producer.flush();
    }

    private static Map<TopicPartition, OffsetAndMetadata> at(String source, long offset) {
        return Map.of(new TopicPartition(source, 0), new OffsetAndMetadata(offset));
    }

    private static long committed(KafkaConsumer<String, String> consumer, String source) {
        TopicPartition partition = new TopicPartition(source, 0);
        return consumer.committed(Set.of(partition)).get(partition).offset();
    }

    private static String scenes(String topic, String source) {
        KafkaProducer<String, String> producer = producer(topic);
        producer.initTransactions();
        producer.beginTransaction();
        send(producer, topic, "committed");
        producer.commitTransaction();
        producer.beginTransaction();
        send(producer, topic, "aborted");
        producer.abortTransaction();
        KafkaConsumer<String, String> consumer = consumer(topic);
        consumer.subscribe(List.of(source));
        while (consumer.poll(WAIT).isEmpty()) {}
        ConsumerGroupMetadata group = consumer.groupMetadata();
        List<Long> offsets = new ArrayList<>();
        producer.beginTransaction();
        send(producer, topic, "with offsets");
        producer.sendOffsetsToTransaction(at(source, 5), group);
        producer.commitTransaction();
        offsets.add(committed(consumer, source));
        producer.beginTransaction();
        send(producer, topic, "aborted offsets");
        producer.sendOffsetsToTransaction(at(source, 9), group);
        producer.abortTransaction();
        offsets.add(committed(consumer, source));
        producer.beginTransaction();
        producer.sendOffsetsToTransaction(at(source, 7), group);
        producer.commitTransaction();
        offsets.add(committed(consumer, source));
        producer.beginTransaction();
        producer.commitTransaction();
        consumer.close();
        String left = "";
        producer.beginTransaction();
        try {
            producer.sendOffsetsToTransaction(at(source, 8), group);
            producer.commitTransaction();
        } catch (KafkaException error) {
            left = error.getClass().getSimpleName();
        }
        producer.abortTransaction();
        producer.beginTransaction();
        send(producer, topic, "zombie");
        String zombie = "";
        try (KafkaProducer<String, String> second = producer(topic)) {
            second.initTransactions();
            second.beginTransaction();
            send(second, topic, "second");
            try {
                producer.commitTransaction();
            } catch (KafkaException error) {
                zombie = error.getClass().getSimpleName();
            }
            second.commitTransaction();
        }
        producer.close();
        return String.format(
                "{\"offsets\": %s, \"left member\": \"%s\", \"zombie\": \"%s\"}",
                offsets, left, zombie);
    }

    private static String transform(String source, String target, int count) {
        int done = 0;
        int commits = 0;
        int aborts = 0;
        try (KafkaProducer<String, String> producer = producer(target);
                KafkaConsumer<String, String> consumer = consumer(target)) {
            producer.initTransactions();
            consumer.subscribe(List.of(source));
            while (done < count) {
                ConsumerRecords<String, String> polled = consumer.poll(WAIT);
                if (polled.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                for (ConsumerRecord<String, String> each : polled) {
                    producer.send(
                            new ProducerRecord<>(
                                    target, each.partition(), null, each.value() + "!"));
                }
                producer.sendOffsetsToTransaction(polled.nextOffsets(), consumer.groupMetadata());
                if ((commits + aborts) % 3 == 2) {
                    producer.abortTransaction();
                    aborts++;
                    consumer.committed(consumer.assignment())
                            .forEach(
                                    (partition, found) ->
                                            consumer.seek(
                                                    partition, found == null ? 0 : found.offset()));
                } else {
                    producer.commitTransaction();
                    commits++;
                    done += polled.count();
                }
            }
        }
        return String.format("{\"commits\": %d, \"aborts\": %d}", commits, aborts);
    }

    private static String read(List<String> topics) {
        List<String> result = new ArrayList<>();
        for (String topic : topics) {
            List<String> found = new ArrayList<>();
            try (KafkaConsumer<String, String> consumer = consumer(null)) {
                List<TopicPartition> partitions = new ArrayList<>();
                for (PartitionInfo each : consumer.partitionsFor(topic)) {
                    partitions.add(new TopicPartition(topic, each.partition()));
                }
                consumer.assign(partitions);
                consumer.seekToBeginning(partitions);
                Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
                while (partitions.stream().anyMatch(it -> consumer.position(it) < ends.get(it))) {
                    for (ConsumerRecord<String, String> each : consumer.poll(WAIT)) {
                        found.add(
                                String.format(
                                        "[%d, %d, \"%s\"]",
                                        each.partition(), each.offset(), each.value()));
                    }
                }
            }
            result.add(String.format("\"%s\": [%s]", topic, String.join(", ", found)));
        }
        return "{" + String.join(", ", result) + "}";
    }

    private static String init() {
        try (KafkaProducer<String, String> producer = producer("init")) {
            producer.initTransactions();
            return "\"\"";
        } catch (KafkaException error) {
            return "\"" + error.getClass().getSimpleName() + "\"";
        }
    }
}
