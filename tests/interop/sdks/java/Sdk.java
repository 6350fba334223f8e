import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.core.builder.CloudEventBuilder;
import io.cloudevents.kafka.KafkaMessageFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Iterator;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** Reads and writes events with the official SDK for Java; tests/interop/sdks/README.md has the lines. */
public final class Sdk {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String STRUCTURED = "application/cloudevents+json";

    private Sdk() {}

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (Exception error) {
                answer.removeAll();
                answer.put("error", error.getClass().getSimpleName());
            }
            System.out.println(answer);
        }
    }

    private static void answer(JsonNode asked, ObjectNode answer) throws Exception {
        CloudEvent event = asked.has("headers") ? read(asked) : made(asked);
        if (!asked.has("mode")) {
            answer.put("data", event.getData() == null ? null : encoded(event.getData().toBytes()));
            for (String name : event.getAttributeNames()) {
                Object value = event.getAttribute(name);
                if (value != null) {
                    answer.put(name, value.toString());
                }
            }
            for (String name : event.getExtensionNames()) {
                answer.put(name, String.valueOf(event.getExtension(name)));
            }
            return;
        }
        ProducerRecord<Void, byte[]> record = asked.get("mode").asText().equals("binary")
            ? KafkaMessageFactory.createWriter("t").writeBinary(event)
            : KafkaMessageFactory.createWriter("t").writeStructured(event, STRUCTURED);
        answer.put("value", record.value() == null ? null : encoded(record.value()));
        answer.putNull("key");
    }

    private static CloudEvent read(JsonNode asked) {
        RecordHeaders headers = new RecordHeaders();
        for (JsonNode header : asked.get("headers")) {
            headers.add(header.get(0).asText(), header.get(1).asText().getBytes(StandardCharsets.UTF_8));
        }
        return KafkaMessageFactory.createReader(headers, decoded(asked.get("value"))).toEvent();
    }

    private static CloudEvent made(JsonNode asked) {
        CloudEventBuilder builder = CloudEventBuilder.v1();
        for (Iterator<String> names = asked.get("attributes").fieldNames(); names.hasNext();) {
            String name = names.next();
            String text = asked.get("attributes").get(name).asText();
            switch (name) {
                case "id": builder.withId(text); break;
                case "source": builder.withSource(URI.create(text)); break;
                case "type": builder.withType(text); break;
                case "datacontenttype": builder.withDataContentType(text); break;
                default: builder.withExtension(name, text);
            }
        }
        byte[] data = decoded(asked.get("data"));
        return data == null ? builder.build() : builder.withData(data).build();
    }

    private static String encoded(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] decoded(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }
}
