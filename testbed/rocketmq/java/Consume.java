import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Receives messages of TOPIC from its beginning until COUNT different keys are there and a moment longer, or
 * SECONDS are over, or SIGTERM comes: NAMESRV TOPIC COUNT SECONDS [GROUP]. Says "started" when it receives.
 */
public class Consume {
    private static final int MOMENT_MS = 1000;
    private static final int LOOK_MS = 50;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            args.length > 4 ? args[4] : "consumers_of_" + topic, Signing.hook(), new AllocateMessageQueueAveragely());
        if (!args[0].isEmpty()) { // else it asks an HTTP endpoint
            consumer.setNamesrvAddr(args[0]);
        }
        consumer.setUnitName(System.getProperty("unit"));
        Patience.of(consumer);
        consumer.setHeartbeatBrokerInterval(1000); // 5.5.0 may skip its first heartbeat; nothing comes till the next
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
        Ending.listen();
        consumer.start();
        System.out.println("started");
        long last = begin + TimeUnit.SECONDS.toMillis(Integer.parseInt(args[3]));
        while (complete.getCount() > 0 && Ending.TOLD.getCount() > 0 && System.currentTimeMillis() < last) {
            complete.await(LOOK_MS, TimeUnit.MILLISECONDS);
        }
        if (complete.getCount() == 0) {
            Thread.sleep(MOMENT_MS);
        }
        consumer.shutdown();
        Ending.exit(String.format("{\"received\":%d,\"distinct\":%d,\"ms\":%d,\"keys\":[%s]}",
            received.get(), keys.size(), System.currentTimeMillis() - begin, ranges(keys)));
    }

    /** Numbers as JSON pairs of the first and the last of each row without a gap. */
    private static String ranges(Set<String> keys) {
        StringBuilder text = new StringBuilder();
        int[] numbers = keys.stream().mapToInt(Integer::parseInt).sorted().toArray();
        for (int from = 0, i = 0; i < numbers.length; i++) {
            if (i + 1 == numbers.length || numbers[i + 1] != numbers[i] + 1) {
                text.append(from == 0 ? "" : ",").append(String.format("[%d,%d]", numbers[from], numbers[i]));
                from = i + 1;
            }
        }
        return text.toString();
    }
}
