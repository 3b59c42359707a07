import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends COUNT messages of ten orders to TOPIC, all of one order to one queue, and receives them orderly:
 * NAMESRV TOPIC COUNT SECONDS.
 */
public class Ordered {
    private static final int ORDERS = 10;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        DefaultMQProducer producer = new DefaultMQProducer("producers_of_" + topic, Signing.hook());
        producer.setNamesrvAddr(args[0]);
        Patience.of(producer);
        producer.start();
        int queues = producer.fetchPublishMessageQueues(topic).size();
        Set<String> used = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < count; i++) {
            Message message = new Message(topic, "TagA", String.valueOf(i), String.valueOf(i).getBytes("UTF-8"));
            int order = i % ORDERS;
            used.add(Patience.send(() -> producer.send(message,
                (all, sent, number) -> all.get((Integer) number % all.size()), order)).getMessageQueue().toString());
        }

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            "consumers_of_" + topic, Signing.hook(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(args[0]);
        Patience.of(consumer);
        consumer.setHeartbeatBrokerInterval(1000); // 5.5.0 may skip its first heartbeat; nothing comes till the next
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        Map<Integer, Integer> last = new ConcurrentHashMap<>();
        AtomicInteger received = new AtomicInteger();
        AtomicInteger outOfOrder = new AtomicInteger();
        CountDownLatch complete = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                int number = Integer.parseInt(message.getKeys());
                Integer before = last.put(number % ORDERS, number);
                if (before != null && before != number - ORDERS) {
                    outOfOrder.incrementAndGet();
                }
                if (received.incrementAndGet() == count) {
                    complete.countDown();
                }
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        complete.await(Integer.parseInt(args[3]), TimeUnit.SECONDS);
        System.out.printf("{\"queues\":%d,\"used\":%d,\"received\":%d,\"out_of_order\":%d}%n",
            queues, used.size(), received.get(), outOfOrder.get());
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
