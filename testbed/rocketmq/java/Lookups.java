import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;

/**
 * Asks for the route of TOPIC ten times a second, and prints what comes, "route" or the error, whenever that differs
 * from what came before, until it is ended: NAMESRV TOPIC.
 */
public class Lookups {
    private static final int EACH_MS = 100;

    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("asks_for_routes", Signing.hook());
        producer.setNamesrvAddr(args[0]);
        producer.start();
        String before = "";
        while (true) {
            String now = lookup(producer, args[1]);
            if (!now.equals(before)) {
                System.out.println(now);
            }
            before = now;
            TimeUnit.MILLISECONDS.sleep(EACH_MS);
        }
    }

    private static String lookup(DefaultMQProducer producer, String topic) {
        try {
            producer.fetchPublishMessageQueues(topic);
            return "route";
        } catch (MQClientException e) {
            return String.valueOf(e.getCause()).split("\n")[0];
        }
    }
}
