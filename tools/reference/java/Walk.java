import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Calls the main methods of Kafka's own client against a broker: {@code BOOTSTRAP NAME [modern]}.
 *
 * <p>The topic and the group have the name NAME. With {@code modern} it uses a group of the
 * consumer protocol and a share group, too. Prints JSON: the number of records that it read with
 * isolation level read_committed ("committed"), and with read_uncommitted ("every").
 */
public final class Walk {
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");

    private final String bootstrap;
    private final String name;

    private Walk(String bootstrap, String name) {
        this.bootstrap = bootstrap;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        new Walk(arguments[0], arguments[1]).run(List.of(arguments).contains("modern"));
    }

    private void run(boolean isModern) throws Exception {
        try (Admin admin = Admin.create(settings(Map.of()))) {
            admin.createTopics(List.of(new NewTopic(name, 2, (short) 1))).all().get();
            for (int number = 0; number < CODECS.size(); number++) {
                Map<String, Object> plain =
                        Map.of("compression.type", CODECS.get(number), "enable.idempotence", false);
                write(plain, 20, number % 2);
            }
            write(Map.of("acks", "0", "enable.idempotence", false), 5, 0);
            write(Map.of("enable.idempotence", true), 20, 0);
            int committed = readAsGroup();
            int every = readEverything();
            readAsModernGroup();
            if (isModern) {
                readAsShareGroup(admin);
            }
            lookAt(admin);
            admin.deleteTopics(List.of(name)).all().get();
            System.out.println("{\"committed\": " + committed + ", \"every\": " + every + "}");
        }
    }

    private Map<String, Object> settings(Map<String, Object> more) {
        Map<String, Object> all = new HashMap<>(more);
        all.put("bootstrap.servers", bootstrap);
        return all;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> more) {
        Map<String, Object> all = settings(more);
        all.put("linger.ms", 100);
        ByteArraySerializer bytes = new ByteArraySerializer();
        return new KafkaProducer<>(all, bytes, bytes);
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        Map<String, Object> all = settings(more);
        all.put("auto.offset.reset", "earliest");
        all.put("enable.auto.commit", false);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        return new KafkaConsumer<>(all, bytes, bytes);
    }

    private void write(Map<String, Object> more, int count, int partition) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(more)) {
            send(producer, count, partition);
        }
    }

    private void send(KafkaProducer<byte[], byte[]> producer, int count, int partition)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            byte[] key = n % 2 == 0 ? null : "key".getBytes(StandardCharsets.UTF_8);
            byte[] value = ("value " + n + " ").repeat(20).getBytes(StandardCharsets.UTF_8);
            ProducerRecord<byte[], byte[]> record =
                    new ProducerRecord<>(name, partition, key, value);
            if (n % 3 != 0) {
                record.headers().add("h", "value".getBytes(StandardCharsets.UTF_8));
                record.headers().add("h", new byte[0]);
                record.headers().add("null", null);
            }
            sent.add(producer.send(record));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            each.get();
        }
    }

    private int readAsGroup() throws Exception {
        Map<String, Object> member =
                Map.of(
                        "group.id", name,
                        "isolation.level", "read_committed",
                        "session.timeout.ms", 6000,
                        "heartbeat.interval.ms", 200);
        try (KafkaConsumer<byte[], byte[]> group = consumer(member)) {
            group.subscribe(List.of(name));
            int count = read(group, 125);
            group.commitSync();
            transact(group);
            count += read(group, 10);
            group.commitSync();
            group.committed(Set.of(new TopicPartition(name, 0)));
            return count;
        }
    }

    private void transact(KafkaConsumer<byte[], byte[]> group) throws Exception {
        Map<String, Object> more = Map.of("transactional.id", name, "compression.type", "lz4");
        try (KafkaProducer<byte[], byte[]> producer = producer(more)) {
            producer.initTransactions();
            producer.beginTransaction();
            send(producer, 10, 0);
            producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(name, 1), new OffsetAndMetadata(1)),
                    group.groupMetadata());
            producer.commitTransaction();
            producer.beginTransaction();
            send(producer, 10, 1);
            producer.abortTransaction();
        }
    }

    private int readEverything() {
        try (KafkaConsumer<byte[], byte[]> everything = consumer(Map.of())) {
            List<TopicPartition> partitions = partitions();
            everything.assign(partitions);
            everything.beginningOffsets(partitions);
            everything.endOffsets(partitions);
            everything.offsetsForTimes(Map.of(partitions.get(0), 1L));
            everything.listTopics();
            return read(everything, 145);
        }
    }

    /** Reads in a group of the consumer protocol (KIP-848). */
    private void readAsModernGroup() {
        Map<String, Object> member =
                Map.of(
                        "group.id", name + "-modern",
                        "isolation.level", "read_committed",
                        "group.protocol", "consumer");
        try (KafkaConsumer<byte[], byte[]> group = consumer(member)) {
            group.subscribe(List.of(name));
            if (read(group, 135) != 135) {
                throw new IllegalStateException("the group did not read 135 records");
            }
            group.commitSync();
        }
    }

    /** Reads in a share group (KIP-932). */
    private void readAsShareGroup(Admin admin) throws Exception {
        String id = name + "-share";
        ConfigResource group = new ConfigResource(ConfigResource.Type.valueOf("GROUP"), id);
        ConfigEntry entry = new ConfigEntry("share.auto.offset.reset", "earliest");
        Collection<AlterConfigOp> change =
                List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
        admin.incrementalAlterConfigs(Map.of(group, change)).all().get();
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        Map<String, Object> member = settings(Map.of("group.id", id));
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(member, bytes, bytes)) {
            consumer.subscribe(List.of(name));
            long until = System.nanoTime() + PATIENCE.toNanos();
            for (int count = 0; count < 135; ) {
                if (System.nanoTime() > until) {
                    throw new IllegalStateException("the share group read only " + count + " records");
                }
                count += consumer.poll(Duration.ofMillis(200)).count();
            }
            consumer.commitSync();
        }
    }

    /** Polls until `least` records were read, then for 600 ms of heartbeats; returns the count. */
    private int read(KafkaConsumer<byte[], byte[]> consumer, int least) {
        long until = System.nanoTime() + PATIENCE.toNanos();
        int count = 0;
        while (System.nanoTime() < until) {
            int came = consumer.poll(Duration.ofMillis(200)).count();
            if (count < least && count + came >= least) {
                until = System.nanoTime() + Duration.ofMillis(600).toNanos();
            }
            count += came;
        }
        return count;
    }

    private List<TopicPartition> partitions() {
        return List.of(new TopicPartition(name, 0), new TopicPartition(name, 1));
    }

    private void lookAt(Admin admin) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, name);
        admin.describeConfigs(List.of(topic)).all().get();
        ConfigEntry entry = new ConfigEntry("retention.ms", "100000");
        Collection<AlterConfigOp> change =
                List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET));
        admin.incrementalAlterConfigs(Map.of(topic, change)).all().get();
        admin.createPartitions(Map.of(name, NewPartitions.increaseTo(3))).all().get();
        admin.describeCluster().nodes().get();
        admin.describeTopics(List.of(name)).allTopicNames().get();
        admin.describeLogDirs(List.of(1)).allDescriptions().get();
        admin.describeMetadataQuorum().quorumInfo().get();
        admin.describeFeatures().featureMetadata().get();
        for (OffsetSpec spec : List.of(OffsetSpec.earliest(), OffsetSpec.latest())) {
            admin.listOffsets(Map.of(partitions().get(0), spec)).all().get();
        }
        admin.listConsumerGroups().all().get();
        admin.describeConsumerGroups(List.of(name)).all().get();
        admin.describeConsumerGroups(List.of(name + "-modern")).all().get();
        admin.listConsumerGroupOffsets(Map.of(name, new ListConsumerGroupOffsetsSpec()))
                .all()
                .get();
        admin.describeProducers(partitions()).all().get();
        admin.listTransactions().all().get();
        admin.describeTransactions(List.of(name)).all().get();
        admin.describeClientQuotas(
                        org.apache.kafka.common.quota.ClientQuotaFilter.all())
                .entities()
                .get();
        admin.describeUserScramCredentials().all().get();
        admin.listPartitionReassignments().reassignments().get();
        admin.deleteRecords(Map.of(partitions().get(0), RecordsToDelete.beforeOffset(2)))
                .all()
                .get();
        admin.deleteConsumerGroups(List.of(name)).all().get();
    }
}
