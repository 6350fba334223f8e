import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Answers, in order, what it is asked on its standard input, by Kafka's own classes.
 *
 * A question is an int32 size, one byte that names the operation (its place in OPERATIONS), and
 * what the operation wants. An answer is an int32 size, one byte of status, and what the operation
 * gives, or UTF-8 text that says why there is nothing (behind an int32, how many bytes were read,
 * if they were). All numbers are big-endian. It ends when
 * its input does.
 */
public final class Reference {
    /** Kafka's class took what it was given. */
    private static final byte DONE = 0;
    /** Kafka's class refused what it was given. */
    private static final byte REFUSED = 1;
    /** Kafka's class read what it was given, and then could not write it. */
    private static final byte UNWRITABLE = 2;
    /** The question makes no sense, or this program has a fault. */
    private static final byte FAILED = 3;

    private static final int BUFFER_BYTES = 1 << 16;

    interface Operation {
        /** Answers a question; `question` is not used again afterwards. */
        ByteBuffer answer(ByteBuffer question) throws Throwable;
    }

    /** Kafka's class refused its input: bytes that it cannot read, or JSON that it does not take. */
    static final class Refusal extends Exception {
        private static final long serialVersionUID = 1L;

        Refusal(Throwable cause) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
        }
    }

    /** Kafka's class read `taken` bytes, and cannot write what it read. */
    static final class Unwritable extends Exception {
        private static final long serialVersionUID = 1L;

        private final int taken;

        Unwritable(RuntimeException cause, int taken) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
            this.taken = taken;
        }
    }

    /** By number; `tools.reference.process.Operation` has the same. */
    private static final Operation[] OPERATIONS = {
        Messages::rewrite,
        Messages::toJson,
        Messages::fromJson,
        Records::read,
        Records::build,
        Rights::decide,
        Quotas::measure,
        Assignors::assign,
        MemberData::answer,
    };

    private Reference() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedInputStream source = new BufferedInputStream(System.in, BUFFER_BYTES);
        DataInputStream questions = new DataInputStream(source);
        DataOutputStream answers =
            new DataOutputStream(new BufferedOutputStream(System.out, BUFFER_BYTES));
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
            int number = question.get();
            write(answers, DONE, OPERATIONS[number].answer(question));
        } catch (Refusal refusal) {
            write(answers, REFUSED, text(refusal.getMessage()));
        } catch (Unwritable unwritable) {
            byte[] reason = unwritable.getMessage().getBytes(StandardCharsets.UTF_8);
            ByteBuffer answer = ByteBuffer.allocate(Integer.BYTES + reason.length);
            write(answers, UNWRITABLE, answer.putInt(unwritable.taken).put(reason).flip());
        } catch (Throwable fault) {
            StringWriter trace = new StringWriter();
            fault.printStackTrace(new PrintWriter(trace));
            write(answers, FAILED, text(trace.toString()));
        }
    }

    private static ByteBuffer text(String value) {
        return ByteBuffer.wrap(value.getBytes(StandardCharsets.UTF_8));
    }

    private static void write(DataOutputStream answers, byte status, ByteBuffer answer)
            throws IOException {
        answers.writeInt(1 + answer.remaining());
        answers.writeByte(status);
        answers.write(answer.array(), answer.position(), answer.remaining());
    }
}
