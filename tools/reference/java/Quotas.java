import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

/** What Kafka's measures of quotas say of things taken at given times. */
final class Quotas {
    private Quotas() {
    }

    /**
     * Reads a line `samples seconds limit`, then lines `time value`; of each it answers a line with
     * the rate, the span that the rate is taken over in ms, and the tokens left in a bucket.
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
