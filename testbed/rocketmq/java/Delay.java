import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends COUNT messages to TOPIC to be delivered later, and receives them: NAMESRV TOPIC COUNT SECONDS WHEN.
 * WHEN is "level N" (1: after a second) or "ms N" (RocketMQ 5.x).
 */
public class Delay {
    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        String[] when = args[4].split(" ");
        Queue<Long> delays = new ConcurrentLinkedQueue<>();
        CountDownLatch complete = new CountDownLatch(count);

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            "consumers_of_" + topic, Signing.hook(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(args[0]);
        Patience.of(consumer);
        consumer.setHeartbeatBrokerInterval(1000); // 5.5.0 may skip its first heartbeat; nothing comes till the next
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                delays.add(System.currentTimeMillis() - message.getBornTimestamp());
                complete.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();

        DefaultMQProducer producer = new DefaultMQProducer("producers_of_" + topic, Signing.hook());
        producer.setNamesrvAddr(args[0]);
        Patience.of(producer);
        producer.start();
        for (int i = 0; i < count; i++) {
            Message message = new Message(topic, "TagA", String.valueOf(i), ("message " + i).getBytes("UTF-8"));
            if (when[0].equals("level")) {
                message.setDelayTimeLevel(Integer.parseInt(when[1]));
            } else {
                MessageAccessor.putProperty(message, "TIMER_DELAY_MS", when[1]);
            }
            Patience.send(() -> producer.send(message));
        }
        complete.await(Integer.parseInt(args[3]), TimeUnit.SECONDS);
        System.out.printf("{\"received\":%d,\"shortest_ms\":%d,\"longest_ms\":%d}%n", delays.size(),
            delays.stream().mapToLong(Long::longValue).min().orElse(-1),
            delays.stream().mapToLong(Long::longValue).max().orElse(-1));
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
