import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Prints the APIs that the class ApiKeys of each clients jar declares.
 *
 * A line is one API: the jar, the api key, the name of the constant, and the lowest and highest
 * version, separated by tabs. An API without versions has the range 0 to -1.
 *
 * Up to 0.11 the versions are in Protocol.REQUESTS, an array per api key; from 1.0 on they are in
 * ApiKeys itself. The program uses reflection, so that it can read every jar.
 */
public final class Ranges {
    private static final String PACKAGE = "org.apache.kafka.common.protocol.";

    /** The first argument is the class path of the libraries for the jars; the others are jars. */
    public static void main(String[] jars) throws Exception {
        for (String jar : Arrays.copyOfRange(jars, 1, jars.length)) {
            List<URL> found = new ArrayList<>();
            for (String path : (jar + File.pathSeparator + jars[0]).split(File.pathSeparator)) {
                found.add(Path.of(path).toUri().toURL());
            }
            URL[] urls = found.toArray(new URL[0]);
            try (URLClassLoader loader =
                    new URLClassLoader(urls, ClassLoader.getPlatformClassLoader())) {
                print(jar, loader);
            }
        }
    }

    private static void print(String jar, ClassLoader loader) throws Exception {
        Class<?> keys = Class.forName(PACKAGE + "ApiKeys", true, loader);
        Method oldest = method(keys, "oldestVersion");
        Method latest = method(keys, "latestVersion");
        for (Object key : keys.getEnumConstants()) {
            int id = ((Number) keys.getField("id").get(key)).intValue();
            int low;
            int high;
            if (oldest != null && latest != null) {
                low = ((Number) oldest.invoke(key)).intValue();
                high = ((Number) latest.invoke(key)).intValue();
            } else {
                Class<?> protocol = Class.forName(PACKAGE + "Protocol", true, loader);
                int[] range = range(protocol, id);
                low = range[0];
                high = range[1];
            }
            System.out.println(String.join("\t", jar, "" + id, ((Enum<?>) key).name(), "" + low, "" + high));
        }
    }

    /** Returns the lowest and the highest version with a schema; 0 and -1 if there is none. */
    private static int[] range(Class<?> protocol, int id) throws Exception {
        Field field = protocol.getField("REQUESTS");
        Object schemas = Array.get(field.get(null), id);
        int low = 0;
        int high = -1;
        for (int version = 0; schemas != null && version < Array.getLength(schemas); version++) {
            if (Array.get(schemas, version) != null) {
                low = high < 0 ? version : low;
                high = version;
            }
        }
        return new int[] {low, high};
    }

    private static Method method(Class<?> owner, String name) {
        try {
            return owner.getMethod(name);
        } catch (NoSuchMethodException none) {
            return null;
        }
    }
}
