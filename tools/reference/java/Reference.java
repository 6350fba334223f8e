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
 * Answers the questions on its standard input with Kafka's own classes, in order.
 *
 * A question is an int32 size, one byte with the number of the operation (its index in OPERATIONS),
 * and the operation's input. An answer is an int32 size, one byte of status, and a content. The
 * content is the operation's output if the status is DONE, else the reason in UTF-8; if the status
 * is UNWRITABLE, an int32 with the number of decoded bytes precedes the reason. All numbers are
 * big-endian. The program ends when its input ends.
 */
public final class Reference {
    /** Kafka's class accepted the input. */
    private static final byte DONE = 0;
    /** Kafka's class refused the input. */
    private static final byte REFUSED = 1;
    /** Kafka's class decoded the input, but could not encode it again. */
    private static final byte UNWRITABLE = 2;
    /** The question is invalid, or this program has a fault. */
    private static final byte FAILED = 3;

    private static final int BUFFER_BYTES = 1 << 16;

    interface Operation {
        /** Returns the answer to a question, and may consume `question`. */
        ByteBuffer answer(ByteBuffer question) throws Throwable;
    }

    /** Kafka's class refused its input, bytes or JSON. */
    static final class Refusal extends Exception {
        private static final long serialVersionUID = 1L;

        Refusal(Throwable cause) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
        }
    }

    /** Kafka's class decoded `taken` bytes, but cannot encode the message. */
    static final class Unwritable extends Exception {
        private static final long serialVersionUID = 1L;

        private final int taken;

        Unwritable(RuntimeException cause, int taken) {
            super(cause.getClass().getSimpleName() + ": " + cause.getMessage(), cause);
            this.taken = taken;
        }
    }

    /** By number; the numbers are those of `tools.reference.process.Operation`. */
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
        Regexes::match,
        Serializers::serialize,
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
