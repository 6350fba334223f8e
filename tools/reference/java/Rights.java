import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Authorizes operations with KRaft's StandardAuthorizer. */
final class Rights {
    private Rights() {
    }

    /**
     * Returns a letter, Y or N, for each line `may` and `any` of the question.
     *
     * Lines have words, separated by tabs; types, patterns, operations and permissions are numbers.
     * The first line is `settings super-users allow-everyone`. `acl type name pattern principal
     * host operation permission` adds an ACL. `may principal host operation type name` is about one
     * resource, `any principal host operation type` about at least one resource of the type.
     */
    static ByteBuffer decide(ByteBuffer question) throws Exception {
        String text = StandardCharsets.UTF_8.decode(question).toString();
        StringBuilder answer = new StringBuilder();
        try (Metrics metrics = new Metrics();
                StandardAuthorizer authorizer = new StandardAuthorizer()) {
            giveMetrics(authorizer, metrics);
            for (String line : text.split("\n")) {
                String[] words = line.split("\t", -1);
                switch (words[0]) {
                    case "settings" -> {
                        authorizer.configure(Map.of(
                            "node.id", "1",
                            StandardAuthorizer.SUPER_USERS_CONFIG, words[1],
                            StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, words[2]));
                        authorizer.completeInitialLoad();
                    }
                    case "acl" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                        ResourceType.fromCode(Byte.parseByte(words[1])),
                        words[2],
                        PatternType.fromCode(Byte.parseByte(words[3])),
                        words[4],
                        words[5],
                        AclOperation.fromCode(Byte.parseByte(words[6])),
                        AclPermissionType.fromCode(Byte.parseByte(words[7]))));
                    case "may" -> answer.append(letter(authorizer.authorize(
                        new Asking(words[1], words[2]),
                        List.of(new Action(
                            AclOperation.fromCode(Byte.parseByte(words[3])),
                            new ResourcePattern(
                                ResourceType.fromCode(Byte.parseByte(words[4])),
                                words[5],
                                PatternType.LITERAL),
                            1, false, false))).get(0)));
                    case "any" -> answer.append(letter(authorizer.authorizeByResourceType(
                        new Asking(words[1], words[2]),
                        AclOperation.fromCode(Byte.parseByte(words[3])),
                        ResourceType.fromCode(Byte.parseByte(words[4])))));
                    default -> throw new IllegalArgumentException(line);
                }
            }
        }
        byte[] letters = answer.toString().getBytes(StandardCharsets.UTF_8);
        int taken = question.limit();
        return ByteBuffer.allocate(Integer.BYTES + letters.length).putInt(taken).put(letters).flip();
    }

    /** Sets the metrics in which the authorizer, from 4.1 on, counts its decisions. */
    private static void giveMetrics(StandardAuthorizer authorizer, Metrics metrics)
            throws ReflectiveOperationException {
        for (Method method : StandardAuthorizer.class.getMethods()) {
            if (method.getName().equals("withPluginMetrics")) {
                Class<?> kind =
                    Class.forName("org.apache.kafka.common.metrics.internals.PluginMetricsImpl");
                method.invoke(authorizer, kind.getConstructor(Metrics.class, Map.class)
                    .newInstance(metrics, Map.of()));
            }
        }
    }

    private static char letter(AuthorizationResult result) {
        return result == AuthorizationResult.ALLOWED ? 'Y' : 'N';
    }

    /** The context of a request of `principal` from `host`; the authorizer reads nothing else. */
    private static final class Asking implements AuthorizableRequestContext {
        private final KafkaPrincipal principal;
        private final InetAddress address;

        Asking(String principal, String host) throws Exception {
            String[] parts = principal.split(":", 2);
            this.principal = new KafkaPrincipal(parts[0], parts[1]);
            this.address = InetAddress.getByName(host);
        }

        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override
        public KafkaPrincipal principal() {
            return principal;
        }

        @Override
        public InetAddress clientAddress() {
            return address;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
