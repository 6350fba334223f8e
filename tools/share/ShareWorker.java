// A member of a share group: reads and accepts records, and prints each record or a summary.
//
// Arguments: bootstrap, topic, group, "implicit" or "explicit", the most records of a poll, the number of
// records to read or 0, "lines" or "summary". Ends when it has read the records, or when its input ends. A
// line has the value and the delivery count. The summary has the times in seconds from the start to the first
// record, and from the first record to the last, and the CPU time between these two.

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class ShareWorker {
    private static volatile boolean ends = false;

    public static void main(String[] arguments) {
        boolean explicit = arguments[3].equals("explicit");
        boolean lines = arguments[6].equals("lines");
        long wanted = Long.parseLong(arguments[5]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        properties.put("group.id", arguments[2]);
        properties.put("share.acknowledgement.mode", arguments[3]);
        properties.put("max.poll.records", arguments[4]);
        Thread watch = new Thread(ShareWorker::awaitEnd);
        watch.setDaemon(true);
        watch.start();
        long count = 0;
        long begin = System.nanoTime();
        long first = 0;
        double cpu = 0;
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(arguments[1]));
            while (!ends && (wanted == 0 || count < wanted)) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (count == 0 && !records.isEmpty()) {
                    first = System.nanoTime();
                    cpu = cpuSeconds();
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    count++;
                    if (explicit) {
                        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                    }
                    if (lines) {
                        int deliveries = record.deliveryCount().orElse((short) 0);
                        System.out.println(new String(record.value()) + " " + deliveries);
                    }
                }
                System.out.flush();
            }
            consumer.commitSync();
        }
        double took = (System.nanoTime() - first) / 1e9;
        if (!lines) {
            System.out.printf(
                    "{\"count\": %d, \"first_s\": %.6f, \"took_s\": %.6f, \"cpu_s\": %.6f}%n",
                    count, (first - begin) / 1e9, took, cpuSeconds() - cpu);
        }
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
