import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Decodes and encodes messages with the classes that any release since 2.2 generates.
 *
 * Questions and answers are those of Reference.java, with its first three operations. The program
 * finds all classes of Kafka and Jackson by reflection, because their methods differ from release
 * to release: up to 2.3 no ObjectSerializationCache exists, and up to 2.5 no JSON converter.
 */
public final class Generated {
    private static final byte DONE = 0;
    private static final byte REFUSED = 1;
    private static final byte UNWRITABLE = 2;
    private static final byte FAILED = 3;

    private static final int REWRITE = 0;
    private static final int TO_JSON = 1;
    private static final int FROM_JSON = 2;

    private static final Class<?> CACHE = find("ObjectSerializationCache");
    private static final Class<?> READABLE = find("Readable");
    private static final Class<?> WRITABLE = find("Writable");
    private static final Constructor<?> ACCESSOR =
        constructor(find("ByteBufferAccessor"), ByteBuffer.class);
    private static final Map<String, String> CLASS_NAMES = classNames();
    private static final Map<String, Codec> CODECS = new HashMap<>();

    /** A generated class and its methods; the last two are null if it has no JSON converter. */
    private record Codec(
        Constructor<?> create, Method read, Method size, Method write, Method toJson,
        Method fromJson) {
    }

    private static final class Refusal extends Exception {
        private static final long serialVersionUID = 1L;

        Refusal(Throwable cause) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
        }
    }

    private static final class Unwritable extends Exception {
        private static final long serialVersionUID = 1L;

        private final int taken;

        Unwritable(Throwable cause, int taken) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
            this.taken = taken;
        }
    }

    private Generated() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedInputStream source = new BufferedInputStream(System.in, 1 << 16);
        DataInputStream questions = new DataInputStream(source);
        DataOutputStream answers =
            new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            if (source.available() == 0) {
                answers.flush();
            }
            int size;
            try {
                size = questions.readInt();
            } catch (EOFException end) {
                answers.flush();
                return;
            }
            byte[] question = new byte[size];
            questions.readFully(question);
            answer(ByteBuffer.wrap(question), answers);
        }
    }

    private static void answer(ByteBuffer question, DataOutputStream answers) throws IOException {
        try {
            send(answers, DONE, answerOf(question));
        } catch (Refusal refusal) {
            send(answers, REFUSED, text(refusal.getMessage()));
        } catch (Unwritable unwritable) {
            byte[] reason = text(unwritable.getMessage());
            ByteBuffer content = ByteBuffer.allocate(Integer.BYTES + reason.length);
            send(answers, UNWRITABLE, content.putInt(unwritable.taken).put(reason).array());
        } catch (ReflectiveOperationException | RuntimeException fault) {
            send(answers, FAILED, text(fault.toString()));
        }
    }

    private static byte[] answerOf(ByteBuffer question)
            throws Refusal, Unwritable, ReflectiveOperationException {
        int operation = question.get();
        byte[] name = new byte[Byte.toUnsignedInt(question.get())];
        question.get(name);
        Codec codec = codec(new String(name, StandardCharsets.UTF_8));
        short version = question.getShort();
        int begin = question.position();
        if (operation != REWRITE && codec.toJson == null) {
            throw new Refusal(new UnsupportedOperationException("no JSON converter"));
        }
        if (operation == FROM_JSON) {
            byte[] json = new byte[question.remaining()];
            question.get(json);
            return write(codec, fromJson(codec, json, version), version, json.length);
        }
        Object message = codec.create.newInstance();
        try {
            codec.read.invoke(message, ACCESSOR.newInstance(question), version);
        } catch (InvocationTargetException refused) {
            throw new Refusal(refused.getCause());
        }
        int taken = question.position() - begin;
        if (operation == REWRITE) {
            return write(codec, message, version, taken);
        }
        byte[] json = text(codec.toJson.invoke(null, message, version).toString());
        return ByteBuffer.allocate(Integer.BYTES + json.length).putInt(taken).put(json).array();
    }

    private static Object fromJson(Codec codec, byte[] json, short version)
            throws Refusal, ReflectiveOperationException {
        try {
            Class<?> mapper = Class.forName("com.fasterxml.jackson.databind.ObjectMapper");
            Object tree = mapper.getMethod("readTree", byte[].class)
                .invoke(mapper.getConstructor().newInstance(), (Object) json);
            return codec.fromJson.invoke(null, tree, version);
        } catch (InvocationTargetException refused) {
            throw new Refusal(refused.getCause());
        }
    }

    private static byte[] write(Codec codec, Object message, short version, int taken)
            throws Unwritable, ReflectiveOperationException {
        try {
            int size;
            ByteBuffer answer;
            if (CACHE == null) {
                size = (int) codec.size.invoke(message, version);
                answer = ByteBuffer.allocate(Integer.BYTES + size).putInt(taken);
                codec.write.invoke(message, ACCESSOR.newInstance(answer), version);
            } else {
                Object sizes = CACHE.getConstructor().newInstance();
                size = (int) codec.size.invoke(message, sizes, version);
                answer = ByteBuffer.allocate(Integer.BYTES + size).putInt(taken);
                codec.write.invoke(message, ACCESSOR.newInstance(answer), sizes, version);
            }
            if (answer.hasRemaining()) {
                throw new IllegalStateException("size() is not the length of what write() writes");
            }
            return answer.array();
        } catch (InvocationTargetException unwritable) {
            throw new Unwritable(unwritable.getCause(), taken);
        }
    }

    private static Codec codec(String name) throws ReflectiveOperationException {
        Codec known = CODECS.get(name);
        if (known == null) {
            String found = CLASS_NAMES.getOrDefault(name + "Data", CLASS_NAMES.get(name));
            if (found == null) {
                throw new ClassNotFoundException("no jar has the message " + name);
            }
            known = codecOf(Class.forName(found));
            CODECS.put(name, known);
        }
        return known;
    }

    private static Codec codecOf(Class<?> message) throws ReflectiveOperationException {
        Method size;
        Method write;
        if (CACHE == null) {
            size = message.getMethod("size", short.class);
            write = message.getMethod("write", WRITABLE, short.class);
        } else {
            size = message.getMethod("size", CACHE, short.class);
            write = message.getMethod("write", WRITABLE, CACHE, short.class);
        }
        Method toJson = null;
        Method fromJson = null;
        try {
            Class<?> converter = Class.forName(message.getName() + "JsonConverter");
            Class<?> tree = Class.forName("com.fasterxml.jackson.databind.JsonNode");
            toJson = converter.getMethod("write", message, short.class);
            fromJson = converter.getMethod("read", tree, short.class);
        } catch (ClassNotFoundException none) {
            // The release has no JSON of this message.
        }
        return new Codec(
            message.getConstructor(), message.getMethod("read", READABLE, short.class), size,
            write, toJson, fromJson);
    }

    private static Class<?> find(String name) {
        try {
            return Class.forName("org.apache.kafka.common.protocol." + name);
        } catch (ClassNotFoundException none) {
            return null;
        }
    }

    private static Constructor<?> constructor(Class<?> of, Class<?>... types) {
        try {
            return of.getConstructor(types);
        } catch (NoSuchMethodException none) {
            throw new ExceptionInInitializerError(none);
        }
    }

    /** Returns the full names of all generated classes, by simple name. */
    private static Map<String, String> classNames() {
        Map<String, String> found = new HashMap<>();
        for (String jar : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!jar.endsWith(".jar")) {
                continue;
            }
            try (ZipFile file = new ZipFile(jar)) {
                for (ZipEntry entry : Collections.list(file.entries())) {
                    String path = entry.getName();
                    if (path.matches("(org/apache/)?kafka/.*/(generated|message|metadata)/\\w+\\.class")) {
                        String name = path.substring(0, path.length() - ".class".length())
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

    private static byte[] text(String value) {
        return value.getBytes(StandardCharsets.UTF_8);
    }

    private static void send(DataOutputStream answers, byte status, byte[] content)
            throws IOException {
        answers.writeInt(1 + content.length);
        answers.writeByte(status);
        answers.write(content);
    }
}
