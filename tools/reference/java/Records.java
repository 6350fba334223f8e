import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.OptionalLong;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;

/**
 * Decodes and builds record batches and message sets with Kafka's classes.
 *
 * These classes are in different packages in Kafka 3.9 and 4, so they are called by reflection. In
 * JSON, bytes are hexadecimal.
 */
final class Records {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final HexFormat HEX = HexFormat.of();
    private static final int FIRST_BUFFER_BYTES = 4096;

    private static final Class<?> MEMORY_RECORDS = named("MemoryRecords");
    private static final Class<?> RECORD_BATCH = named("RecordBatch");
    private static final Class<?> RECORD = named("Record");
    private static final Class<?> BUILDER = named("MemoryRecordsBuilder");

    private Records() {
    }

    /**
     * Decodes a whole buffer; returns {"batches": […], "error": …}.
     *
     * Each batch has its header and its records, [offset, timestamp, timestamp type, key, value,
     * [[header name, value]]]. Checksums of batches and of messages are verified. "error" is the
     * error of Kafka's classes for the bytes after the listed batches, or null.
     */
    static ByteBuffer read(ByteBuffer question) throws Throwable {
        int size = question.remaining();
        ObjectNode answer = MAPPER.createObjectNode();
        ArrayNode batches = answer.putArray("batches");
        answer.putNull("error");
        try {
            Object records = MEMORY_RECORDS.getMethod("readableRecords", ByteBuffer.class)
                .invoke(null, question.slice());
            Iterable<?> found = (Iterable<?>) call(MEMORY_RECORDS, records, "batches");
            Iterator<?> iterator = found.iterator();
            while (iterator.hasNext()) {
                batches.add(batch(iterator.next()));
            }
        } catch (InvocationTargetException error) {
            answer.put("error", describe(error.getCause()));
        } catch (RuntimeException | Error error) { // snappy throws its own Error
            answer.put("error", describe(error));
        }
        return answered(size, MAPPER.writeValueAsBytes(answer));
    }

    /** Builds a batch or message set from its description in JSON; returns its bytes. */
    static ByteBuffer build(ByteBuffer question) throws Throwable {
        int size = question.remaining();
        byte[] json = new byte[size];
        question.get(json);
        JsonNode wanted = MAPPER.readTree(json);
        Constructor<?> constructor = BUILDER.getConstructor(
            ByteBuffer.class, byte.class, Compression.class, TimestampType.class, long.class,
            long.class, long.class, short.class, int.class, boolean.class, boolean.class,
            int.class, int.class);
        byte magic = (byte) wanted.get("magic").intValue();
        long logAppendTime = wanted.get("log_append_time").longValue();
        Object builder = constructor.newInstance(
            ByteBuffer.allocate(FIRST_BUFFER_BYTES),
            magic,
            Compression.of(wanted.get("compression").textValue()).build(),
            magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE
                : logAppendTime >= 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            wanted.get("base_offset").longValue(),
            logAppendTime,
            wanted.get("producer_id").longValue(),
            (short) wanted.get("producer_epoch").intValue(),
            wanted.get("base_sequence").intValue(),
            wanted.get("is_transactional").booleanValue(),
            false,
            wanted.get("partition_leader_epoch").intValue(),
            Integer.MAX_VALUE);
        Method append = BUILDER.getMethod("appendWithOffset", long.class, long.class,
            byte[].class, byte[].class, Header[].class);
        for (JsonNode record : wanted.get("records")) {
            append.invoke(builder, record.get(0).longValue(), record.get(1).longValue(),
                bytes(record.get(2)), bytes(record.get(3)), headers(record.get(4)));
        }
        ByteBuffer built =
            (ByteBuffer) call(MEMORY_RECORDS, call(BUILDER, builder, "build"), "buffer");
        byte[] copy = new byte[built.remaining()];
        built.get(copy);
        return answered(size, copy);
    }

    private static ObjectNode batch(Object batch) throws ReflectiveOperationException {
        ObjectNode node = MAPPER.createObjectNode();
        call(RECORD_BATCH, batch, "ensureValid");
        int type = ((TimestampType) call(RECORD_BATCH, batch, "timestampType")).id;
        byte magic = (byte) call(RECORD_BATCH, batch, "magic");
        node.put("magic", magic);
        if (magic >= 2) {
            node.put("base_offset", (long) call(RECORD_BATCH, batch, "baseOffset"));
            node.put("record_count", (Integer) call(RECORD_BATCH, batch, "countOrNull"));
        }
        node.put("compression", call(RECORD_BATCH, batch, "compressionType").toString());
        node.put("crc", (long) call(RECORD_BATCH, batch, "checksum"));
        node.put("last_offset", (long) call(RECORD_BATCH, batch, "lastOffset"));
        node.put("next_offset", (long) call(RECORD_BATCH, batch, "nextOffset"));
        node.put("max_timestamp", (long) call(RECORD_BATCH, batch, "maxTimestamp"));
        node.put("timestamp_type", type);
        node.put("producer_id", (long) call(RECORD_BATCH, batch, "producerId"));
        node.put("producer_epoch", (short) call(RECORD_BATCH, batch, "producerEpoch"));
        node.put("base_sequence", (int) call(RECORD_BATCH, batch, "baseSequence"));
        node.put("partition_leader_epoch", (int) call(RECORD_BATCH, batch, "partitionLeaderEpoch"));
        node.put("size_in_bytes", (int) call(RECORD_BATCH, batch, "sizeInBytes"));
        node.put("is_transactional", (boolean) call(RECORD_BATCH, batch, "isTransactional"));
        node.put("is_control", (boolean) call(RECORD_BATCH, batch, "isControlBatch"));
        OptionalLong horizon = (OptionalLong) call(RECORD_BATCH, batch, "deleteHorizonMs");
        if (horizon.isPresent()) {
            node.put("delete_horizon", horizon.getAsLong());
        } else {
            node.putNull("delete_horizon");
        }
        ArrayNode records = node.putArray("records");
        for (Object record : (Iterable<?>) batch) {
            call(RECORD, record, "ensureValid");
            ArrayNode fields = records.addArray();
            fields.add((long) call(RECORD, record, "offset"));
            fields.add((long) call(RECORD, record, "timestamp"));
            fields.add(timestampType(record, type));
            add(fields, (ByteBuffer) call(RECORD, record, "key"));
            add(fields, (ByteBuffer) call(RECORD, record, "value"));
            ArrayNode headers = fields.addArray();
            for (Header header : (Header[]) call(RECORD, record, "headers")) {
                ArrayNode pair = headers.addArray();
                pair.add(header.key());
                add(pair, header.value() == null ? null : ByteBuffer.wrap(header.value()));
            }
        }
        return node;
    }

    /** Returns the timestamp type of a record: its own (magic 0 and 1), else that of its batch. */
    private static int timestampType(Object record, int typeOfBatch)
            throws ReflectiveOperationException {
        Method has = RECORD.getMethod("hasTimestampType", TimestampType.class);
        for (TimestampType type : TimestampType.values()) {
            if ((boolean) has.invoke(record, type)) {
                return type.id;
            }
        }
        return typeOfBatch;
    }

    private static byte[] bytes(JsonNode node) {
        return node.isNull() ? null : HEX.parseHex(node.textValue());
    }

    private static void add(ArrayNode array, ByteBuffer bytes) {
        if (bytes == null) {
            array.addNull();
            return;
        }
        byte[] copy = new byte[bytes.remaining()];
        bytes.get(copy);
        array.add(HEX.formatHex(copy));
    }

    private static Header[] headers(JsonNode node) {
        Header[] headers = new Header[node.size()];
        for (int index = 0; index < headers.length; index++) {
            JsonNode pair = node.get(index);
            headers[index] = new RecordHeader(pair.get(0).textValue(), bytes(pair.get(1)));
        }
        return headers;
    }

    private static ByteBuffer answered(int read, byte[] answer) {
        return ByteBuffer.allocate(Integer.BYTES + answer.length).putInt(read).put(answer).flip();
    }

    private static String describe(Throwable error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }

    private static Object call(Class<?> type, Object object, String method)
            throws ReflectiveOperationException {
        return type.getMethod(method).invoke(object);
    }

    private static Class<?> named(String name) {
        try {
            return Class.forName("org.apache.kafka.common.record.internal." + name);
        } catch (ClassNotFoundException ofKafka3) {
            try {
                return Class.forName("org.apache.kafka.common.record." + name);
            } catch (ClassNotFoundException none) {
                throw new IllegalStateException(none);
            }
        }
    }
}
