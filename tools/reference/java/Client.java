import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Runs Kafka's own client as a program. {@code BOOTSTRAP TOPIC write} produces the records on
 * standard input to partition 0, and prints their offsets; {@code BOOTSTRAP TOPIC read COUNT}
 * prints the first COUNT records of partition 0.
 *
 * <p>A line is one record: key, value, then NAME:VALUE for each header, separated by blanks. A null
 * is "-"; any other key, value or header part is "=" and its Base64.
 */
public final class Client {
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    public static void main(String[] arguments) throws Exception {
        if (arguments[2].equals("write")) {
            write(arguments[0], arguments[1]);
        } else {
            read(arguments[0], arguments[1], Integer.parseInt(arguments[3]));
        }
    }

    private static void write(String bootstrap, String topic) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap);
        ByteArraySerializer bytes = new ByteArraySerializer();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, bytes, bytes)) {
            for (String line : lines()) {
                String[] parts = line.split(" ");
                ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(topic, 0, decoded(parts[0]), decoded(parts[1]));
                for (int index = 2; index < parts.length; index++) {
                    String[] header = parts[index].split(":");
                    String name = new String(decoded(header[0]), StandardCharsets.UTF_8);
                    record.headers().add(name, decoded(header[1]));
                }
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> each : sent) {
                System.out.println(each.get().offset());
            }
        }
    }

    private static void read(String bootstrap, String topic, int count) {
        Map<String, Object> settings =
                Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest");
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, bytes, bytes)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            for (int found = 0; found < count; ) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("only " + found + " records were read");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    found++;
                    StringBuilder line = new StringBuilder(encoded(record.key()));
                    line.append(' ').append(encoded(record.value()));
                    for (Header header : record.headers()) {
                        byte[] name = header.key().getBytes(StandardCharsets.UTF_8);
                        line.append(' ').append(encoded(name));
                        line.append(':').append(encoded(header.value()));
                    }
                    System.out.println(line);
                }
            }
        }
    }

    private static List<String> lines() throws IOException {
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.US_ASCII);
        return new BufferedReader(input).lines().toList();
    }

    private static byte[] decoded(String text) {
        return text.equals("-") ? null : Base64.getDecoder().decode(text.substring(1));
    }

    private static String encoded(byte[] bytes) {
        return bytes == null ? "-" : "=" + Base64.getEncoder().encodeToString(bytes);
    }
}
