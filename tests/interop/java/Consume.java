import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Receives messages of TOPIC from its beginning until COUNT different keys are there and a moment longer, or
 * SECONDS are over: NAMESRV TOPIC COUNT SECONDS [GROUP]. Says "started" when it receives.
 */
public class Consume {
    private static final int MOMENT_MS = 1000;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        DefaultMQPushConsumer consumer =
            new DefaultMQPushConsumer(args.length > 4 ? args[4] : "consumers_of_" + topic);
        consumer.setNamesrvAddr(args[0]);
        consumer.setHeartbeatBrokerInterval(1000); // 5.5.0 may skip its first beat; nothing is served till the next
        consumer.setPollNameServerInterval(100);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        Set<String> keys = ConcurrentHashMap.newKeySet();
        AtomicInteger received = new AtomicInteger();
        CountDownLatch complete = new CountDownLatch(1);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                received.incrementAndGet();
                keys.add(message.getKeys());
            }
            if (keys.size() >= count) {
                complete.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        long begin = System.currentTimeMillis();
        consumer.start();
        System.out.println("started");
        if (complete.await(Integer.parseInt(args[3]), TimeUnit.SECONDS)) {
            Thread.sleep(MOMENT_MS);
        }
        System.out.printf("{\"received\":%d,\"distinct\":%d,\"ms\":%d}%n",
            received.get(), keys.size(), System.currentTimeMillis() - begin);
        consumer.shutdown();
        System.exit(0);
    }
}
