import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Decodes and encodes messages with the classes that Kafka generates from its definitions.
 *
 * The input of each operation is one byte with the length of the message's name, the name in the
 * definition, an int16 version, and then bytes or JSON. The output is an int32 with the number of
 * decoded bytes, and then bytes or JSON.
 */
final class Messages {
    private static final String CONVERTER = "JsonConverter";

    /** A generated class: its constructor, and the two methods of its JSON converter. */
    private record Generated(MethodHandle create, MethodHandle toJson, MethodHandle fromJson) {
    }

    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Map<String, String> CLASS_NAMES = classNames();
    private static final Map<String, Generated> GENERATED = new HashMap<>();

    private Messages() {
    }

    /** Decodes a message, and returns it encoded again. */
    static ByteBuffer rewrite(ByteBuffer question) throws Throwable {
        Generated generated = generated(question);
        short version = question.getShort();
        int begin = question.position();
        Message message = read(generated, version, question);
        return write(message, version, question.position() - begin);
    }

    /** Decodes a message, and returns the JSON of Kafka's converter. */
    static ByteBuffer toJson(ByteBuffer question) throws Throwable {
        Generated generated = generated(question);
        short version = question.getShort();
        int begin = question.position();
        Message message = read(generated, version, question);
        byte[] json =
            MAPPER.writeValueAsBytes((JsonNode) generated.toJson.invoke(message, version));
        return ByteBuffer.allocate(Integer.BYTES + json.length)
            .putInt(question.position() - begin)
            .put(json)
            .flip();
    }

    /** Reads a message from JSON, and returns it encoded. */
    static ByteBuffer fromJson(ByteBuffer question) throws Throwable {
        Generated generated = generated(question);
        short version = question.getShort();
        byte[] text = new byte[question.remaining()];
        question.get(text);
        Message message;
        try {
            message = (Message) generated.fromJson.invoke(MAPPER.readTree(text), version);
        } catch (RuntimeException | JsonProcessingException refused) {
            throw new Reference.Refusal(refused);
        }
        return write(message, version, text.length);
    }

    private static Message read(Generated generated, short version, ByteBuffer bytes)
            throws Throwable {
        Message message = (Message) generated.create.invoke();
        try {
            message.read(new ByteBufferAccessor(bytes), version);
        } catch (RuntimeException | StackOverflowError refused) {
            throw new Reference.Refusal(refused);
        }
        return message;
    }

    private static ByteBuffer write(Message message, short version, int taken)
            throws Reference.Unwritable {
        ByteBuffer answer;
        try {
            ObjectSerializationCache sizes = new ObjectSerializationCache();
            int size = message.size(sizes, version);
            answer = ByteBuffer.allocate(Integer.BYTES + size);
            answer.putInt(taken);
            message.write(new ByteBufferAccessor(answer), sizes, version);
        } catch (RuntimeException unwritable) {
            throw new Reference.Unwritable(unwritable, taken);
        }
        if (answer.hasRemaining()) {
            throw new IllegalStateException("size() is not the length of what write() writes");
        }
        return answer.flip();
    }

    private static Generated generated(ByteBuffer question) throws ReflectiveOperationException {
        byte[] name = new byte[Byte.toUnsignedInt(question.get())];
        question.get(name);
        String wanted = new String(name, StandardCharsets.UTF_8);
        Generated known = GENERATED.get(wanted);
        if (known == null) {
            known = find(wanted);
            GENERATED.put(wanted, known);
        }
        return known;
    }

    /** Returns the class of a message: its name in the definition, mostly with "Data" appended. */
    private static Generated find(String name) throws ReflectiveOperationException {
        String found = CLASS_NAMES.getOrDefault(name + "Data", CLASS_NAMES.get(name));
        if (found == null) {
            throw new ClassNotFoundException("no jar on the class path has the message " + name);
        }
        Class<?> message = Class.forName(found);
        Class<?> converter = Class.forName(found + CONVERTER);
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        return new Generated(
            lookup.findConstructor(message, MethodType.methodType(void.class)),
            lookup.findStatic(converter, "write",
                MethodType.methodType(JsonNode.class, message, short.class)),
            lookup.findStatic(converter, "read",
                MethodType.methodType(message, JsonNode.class, short.class)));
    }

    /** Returns the full names of all classes that have a converter, by simple name. */
    private static Map<String, String> classNames() {
        Map<String, String> found = new HashMap<>();
        String suffix = CONVERTER + ".class";
        for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!jar.endsWith(".jar")) {
                continue;
            }
            try (ZipFile file = new ZipFile(jar)) {
                for (ZipEntry entry : Collections.list(file.entries())) {
                    String path = entry.getName();
                    if (path.endsWith(suffix)) {
                        String name = path.substring(0, path.length() - suffix.length())
                            .replace('/', '.');
                        found.put(name.substring(name.lastIndexOf('.') + 1), name);
                    }
                }
            } catch (IOException unreadable) {
                throw new ExceptionInInitializerError(unreadable);
            }
        }
        return found;
    }
}
