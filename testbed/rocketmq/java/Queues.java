import java.util.TreeSet;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Prints the queues that a producer may send a topic to, by its route, for each TOPIC given:
 * NAMESRV TOPIC [TOPIC ...].
 */
public class Queues {
    public static void main(String[] args) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("asks_for_queues", Signing.hook());
        producer.setNamesrvAddr(args[0]);
        Patience.of(producer);
        producer.start();
        StringBuilder table = new StringBuilder();
        for (int i = 1; i < args.length; i++) {
            TreeSet<String> queues = new TreeSet<>();
            try {
                for (MessageQueue queue : producer.fetchPublishMessageQueues(args[i])) {
                    queues.add('"' + queue.getBrokerName() + ":" + queue.getQueueId() + '"');
                }
            } catch (Exception e) {
                queues.clear(); // nobody serves it
            }
            table.append(i == 1 ? "" : ",").append('"').append(args[i]).append("\":[")
                .append(String.join(",", queues)).append(']');
        }
        System.out.println("{\"queues\":{" + table + "}}");
        producer.shutdown();
        System.exit(0);
    }
}
