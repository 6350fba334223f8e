import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/** Measures events with the classes that Kafka uses for quotas. */
final class Quotas {
    private Quotas() {
    }

    /**
     * Returns a line after each event: the rate per second, the time over which the rate is
     * measured in ms, and the tokens that the token bucket has left.
     *
     * The first line of the question is `samples seconds limit`; each other line is an event, `time
     * value`, with the time in ms.
     */
    static ByteBuffer measure(ByteBuffer question) {
        String[] lines = StandardCharsets.UTF_8.decode(question).toString().split("\n");
        String[] settings = lines[0].split(" ");
        MetricConfig config = new MetricConfig()
            .samples(Integer.parseInt(settings[0]))
            .timeWindow(Long.parseLong(settings[1]), TimeUnit.SECONDS)
            .quota(Quota.upperBound(Double.parseDouble(settings[2])));
        Rate rate = new Rate();
        TokenBucket bucket = new TokenBucket();
        StringBuilder answer = new StringBuilder();
        for (int number = 1; number < lines.length; number++) {
            String[] words = lines[number].split(" ");
            long now = Long.parseLong(words[0]);
            double value = Double.parseDouble(words[1]);
            rate.record(config, value, now);
            bucket.record(config, value, now);
            answer.append(rate.measure(config, now)).append(' ')
                .append(rate.windowSize(config, now)).append(' ')
                .append(bucket.measure(config, now)).append('\n');
        }
        byte[] text = answer.toString().getBytes(StandardCharsets.UTF_8);
        int taken = question.limit();
        return ByteBuffer.allocate(Integer.BYTES + text.length).putInt(taken).put(text).flip();
    }
}
