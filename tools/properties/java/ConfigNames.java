import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Prints the names of the properties that the clients of each jar know: one line a name, with the
 * jar, parted by a tab. They are those of the ConfigDefs of the clients, reached by reflection, so
 * that one program reads every jar.
 */
public final class ConfigNames {
    private static final String PACKAGE = "org.apache.kafka.clients.";

    private static final String[] CLIENTS = {
        "admin.AdminClientConfig", "consumer.ConsumerConfig", "producer.ProducerConfig"
    };

    /** The first argument is a class path of what the jars need; the others are the jars. */
    public static void main(String[] jars) throws Exception {
        for (String jar : Arrays.copyOfRange(jars, 1, jars.length)) {
            List<URL> found = new ArrayList<>();
            for (String path : (jar + File.pathSeparator + jars[0]).split(File.pathSeparator)) {
                found.add(Path.of(path).toUri().toURL());
            }
            URL[] urls = found.toArray(new URL[0]);
            Set<String> names = new TreeSet<>();
            try (URLClassLoader loader =
                    new URLClassLoader(urls, ClassLoader.getPlatformClassLoader())) {
                // Defaults that are classes are looked up by it.
                Thread.currentThread().setContextClassLoader(loader);
                for (String client : CLIENTS) {
                    Class<?> config = Class.forName(PACKAGE + client, true, loader);
                    for (Object name : (Set<?>) config.getMethod("configNames").invoke(null)) {
                        names.add((String) name);
                    }
                }
            }
            for (String name : names) {
                System.out.println(jar + "\t" + name);
            }
        }
    }
}
