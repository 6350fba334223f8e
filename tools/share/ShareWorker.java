// A member of a share group: reads and accepts records, and prints each record or a summary.
//
// Arguments: bootstrap, topic, group, "implicit" or "explicit", the most records of a poll, the seconds
// without records after which it ends, or 0, and "lines", "storm" or "summary". It does not end in the first
// 20 s, unless its input ends. A line has the value and the delivery count of a record. With "storm" the lines
// are those of tools/storm/share/sightings.py, and a record with the value "poison" is released. The summary has the number of
// records, the seconds from the start to the first record, the times of the first and the last record in
// seconds since 1970, and the CPU seconds between these two.

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class ShareWorker {
    private static final double FIRST_S = 20;
    private static volatile boolean ends = false;

    /** The delivery count of each record that was accepted last, by partition and offset. */
    private static final Map<String, Integer> accepted = new HashMap<>();

    public static void main(String[] arguments) {
        boolean explicit = arguments[3].equals("explicit");
        boolean lines = arguments[6].equals("lines");
        boolean storm = arguments[6].equals("storm");
        double idle = Double.parseDouble(arguments[5]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[2]);
        properties.put("share.acknowledgement.mode", arguments[3]);
        properties.put("max.poll.records", arguments[4]);
        Thread watch = new Thread(ShareWorker::awaitEnd);
        watch.setDaemon(true);
        watch.start();
        long count = 0;
        double begin = now();
        double first = 0;
        double last = 0;
        double cpu = 0;
        double spent = 0;
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, bytes, bytes)) {
            if (storm) {
                say("started", "");
                consumer.setAcknowledgementCommitCallback(ShareWorker::onAcknowledged);
            }
            consumer.subscribe(List.of(arguments[1]));
            while (!ends && (idle == 0 || now() < Math.max(last + idle, begin + FIRST_S))) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (count == 0 && !records.isEmpty()) {
                    first = now();
                    cpu = cpuSeconds();
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    count++;
                    if (storm) {
                        handle(consumer, record);
                    } else if (explicit) {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    }
                    if (lines) {
                        int deliveries = record.deliveryCount().orElse((short) 0);
                        System.out.println(new String(record.value()) + " " + deliveries);
                    }
                }
                if (!records.isEmpty()) {
                    last = now();
                    spent = cpuSeconds() - cpu;
                }
                System.out.flush();
            }
            consumer.commitSync();
        }
        if (storm) {
            say("left", "");
        } else if (!lines) {
            System.out.printf(
                    Locale.ROOT,
                    "{\"count\": %d, \"first_s\": %.6f, \"first_at\": %.6f,"
                            + " \"last_at\": %.6f, \"cpu_s\": %.6f}%n",
                    count, first - begin, first, last, spent);
        }
    }

    /** Accepts or releases a record, and prints what it does before it does so. */
    private static void handle(
            KafkaShareConsumer<byte[], byte[]> consumer, ConsumerRecord<byte[], byte[]> record) {
        int deliveries = record.deliveryCount().orElse((short) 0);
        String place = record.partition() + " " + record.offset();
        say("got", place + " " + deliveries);
        if (new String(record.value()).equals("poison")) {
            accepted.remove(place);
            consumer.acknowledge(record, AcknowledgeType.RELEASE);
        } else {
            say("accepting", place);
            accepted.put(place, deliveries);
            consumer.acknowledge(record, AcknowledgeType.ACCEPT);
        }
    }

    private static void onAcknowledged(
            Map<TopicIdPartition, Set<Long>> offsets, Exception exception) {
        for (Map.Entry<TopicIdPartition, Set<Long>> each : offsets.entrySet()) {
            int partition = each.getKey().partition();
            if (exception != null) {
                String name = exception.getClass().getSimpleName();
                say("failed", name + " " + each.getValue().size());
                continue;
            }
            for (long offset : each.getValue()) {
                Integer deliveries = accepted.get(partition + " " + offset);
                if (deliveries != null) {
                    say("accepted", partition + " " + offset + ":" + deliveries);
                }
            }
        }
    }

    private static void say(String word, String rest) {
        System.out.printf(Locale.ROOT, "%s %.3f %s%n", word, now(), rest);
        System.out.flush();
    }

    private static double now() {
        return System.currentTimeMillis() / 1e3;
    }

    private static double cpuSeconds() {
        return ((com.sun.management.OperatingSystemMXBean)
                        ManagementFactory.getOperatingSystemMXBean())
                        .getProcessCpuTime()
                / 1e9;
    }

    private static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException error) {
            // the parent has ended
        }
        ends = true;
    }
}
