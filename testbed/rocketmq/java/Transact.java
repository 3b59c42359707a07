import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Sends 3 × TRIPLES transactional messages to TOPIC: one in three is committed at once, one rolled back, one
 * left open until the broker asks back: NAMESRV TOPIC TRIPLES SECONDS.
 */
public class Transact {
    private static final int ROLLED_BACK = 1;
    private static final int OPEN = 2;

    private static LocalTransactionState decided(int number) {
        return number % 3 == ROLLED_BACK ? LocalTransactionState.ROLLBACK_MESSAGE
            : LocalTransactionState.COMMIT_MESSAGE;
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int triples = Integer.parseInt(args[2]);
        Set<Integer> asked = ConcurrentHashMap.newKeySet();
        Set<Integer> received = ConcurrentHashMap.newKeySet();
        CountDownLatch complete = new CountDownLatch(1);

        TransactionMQProducer producer = new TransactionMQProducer("producers_of_" + topic, Signing.hook());
        producer.setNamesrvAddr(args[0]);
        Patience.of(producer);
        producer.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object number) {
                return (Integer) number % 3 == OPEN ? LocalTransactionState.UNKNOW : decided((Integer) number);
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                int number = Integer.parseInt(message.getKeys());
                if (number % 3 == OPEN) {
                    asked.add(number);
                }
                return decided(number); // 5.x may ask about one that has been decided a moment ago
            }
        });
        producer.start();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(
            "consumers_of_" + topic, Signing.hook(), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(args[0]);
        Patience.of(consumer);
        consumer.setHeartbeatBrokerInterval(1000); // 5.5.0 may skip its first heartbeat; nothing comes till the next
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> received.add(Integer.valueOf(message.getKeys())));
            if (received.size() == 2 * triples) {
                complete.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();

        for (int i = 0; i < 3 * triples; i++) {
            int number = i;
            byte[] body = ("message " + i).getBytes("UTF-8");
            Message message = new Message(topic, "TagA", String.valueOf(i), body);
            Patience.send(() -> producer.sendMessageInTransaction(message, number));
        }
        complete.await(Integer.parseInt(args[3]), TimeUnit.SECONDS);
        long rolledBack = received.stream().filter(number -> number % 3 == ROLLED_BACK).count();
        System.out.printf("{\"asked_back\":%d,\"received\":%d,\"rolled_back_received\":%d}%n",
            asked.size(), received.size(), rolledBack);
        consumer.shutdown();
        producer.shutdown();
        System.exit(0);
    }
}
