import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends COUNT messages with keys 0, 1, … to TOPIC, at most PER_SECOND (0: as fast as it goes):
 * NAMESRV TOPIC COUNT PER_SECOND. Says "started" when the first is there.
 *
 * The client's own repetitions are off; a failed send is repeated here and counted, since its message may
 * have been stored all the same.
 */
public class Produce {
    private static final int PATIENCE_MS = 10_000;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        int perSecond = Integer.parseInt(args[3]);
        DefaultMQProducer producer = new DefaultMQProducer("producers_of_" + topic);
        producer.setNamesrvAddr(args[0]);
        producer.setPollNameServerInterval(100);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setSendMsgTimeout(PATIENCE_MS); // of a broker on a busy machine: it is not what is tested
        producer.start();
        long begin = System.currentTimeMillis();
        int sent = 0;
        int failures = 0;
        String lastFailure = "";
        long lastProgress = begin;
        while (sent < count && System.currentTimeMillis() - lastProgress < PATIENCE_MS) {
            try {
                byte[] body = ("message " + sent).getBytes("UTF-8");
                if (producer.send(new Message(topic, "TagA", String.valueOf(sent), body)).getSendStatus()
                        == SendStatus.SEND_OK) {
                    if (sent++ == 0) {
                        System.out.println("started");
                    }
                    lastProgress = System.currentTimeMillis();
                    pace(begin, sent, perSecond);
                    continue;
                }
            } catch (Exception e) {
                lastFailure = e.getClass().getSimpleName() + ": " + String.valueOf(e.getMessage()).split("\n")[0];
            }
            failures++;
            Thread.sleep(50);
        }
        System.out.printf("{\"sent\":%d,\"failures\":%d,\"ms\":%d,\"last_failure\":\"%s\"}%n",
            sent, failures, System.currentTimeMillis() - begin, lastFailure.replace('"', '\'').replace('\\', '/'));
        producer.shutdown();
        System.exit(0);
    }

    private static void pace(long begin, int sent, int perSecond) throws InterruptedException {
        long ahead = perSecond == 0 ? 0 : begin + sent * 1000L / perSecond - System.currentTimeMillis();
        if (ahead > 0) {
            Thread.sleep(ahead);
        }
    }
}
