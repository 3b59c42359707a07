import java.util.concurrent.Callable;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.common.ClientErrorCode;
import org.apache.rocketmq.client.exception.MQClientException;

/** For a machine that is busy with other tests: as it comes, a client that has no route after 3 s gives up. */
final class Patience {
    private static final int PATIENCE_MS = 30_000;
    private static final int PAUSE_MS = 100;

    private Patience() {
    }

    /** Has a client wait longer for a route. */
    static void of(ClientConfig client) {
        client.setMqClientApiTimeout(PATIENCE_MS);
    }

    /** Returns what a send does, which is repeated while there is no route: nothing has been sent then. */
    static <T> T send(Callable<T> send) throws Exception {
        long last = System.currentTimeMillis() + PATIENCE_MS;
        while (true) {
            try {
                return send.call();
            } catch (MQClientException e) { // another thread of the client waits for the route
                if (e.getResponseCode() != ClientErrorCode.NOT_FOUND_TOPIC_EXCEPTION
                        || System.currentTimeMillis() > last) {
                    throw e;
                }
            }
            Thread.sleep(PAUSE_MS);
        }
    }
}
