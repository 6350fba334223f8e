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
 * Prints the property names of the clients in each jar: a line has the jar, a tab and one name.
 *
 * The names are those in the ConfigDefs of the clients. The program uses reflection, so that it can
 * read every jar.
 */
public final class ConfigNames {
    private static final String PACKAGE = "org.apache.kafka.clients.";

    private static final String[] CLIENTS = {
        "admin.AdminClientConfig", "consumer.ConsumerConfig", "producer.ProducerConfig"
    };

    /** The first argument is the class path of the libraries for the jars; the others are jars. */
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
                // ConfigDef loads default values that are classes with the context class loader.
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
