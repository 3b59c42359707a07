import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends COUNT messages with keys FIRST, FIRST + 1, … (0) to TOPIC, at most PER_SECOND (0: as fast as it goes), or
 * as many as it can until SIGTERM: NAMESRV TOPIC COUNT PER_SECOND [REPETITIONS [FIRST]]. Says "sending" when it has.
 *
 * The client repeats a failed send REPETITIONS times (0) by itself; beyond that it is repeated here and counted, since
 * its message may have been stored all the same.
 */
public class Produce {
    private static final int PATIENCE_MS = 10_000;

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        int count = Integer.parseInt(args[2]);
        int perSecond = Integer.parseInt(args[3]);
        DefaultMQProducer producer = new DefaultMQProducer("producers_of_" + topic, Signing.hook());
        if (!args[0].isEmpty()) { // else it asks an HTTP endpoint
            producer.setNamesrvAddr(args[0]);
        }
        producer.setUnitName(System.getProperty("unit"));
        producer.setPollNameServerInterval(100);
        producer.setRetryTimesWhenSendFailed(args.length > 4 ? Integer.parseInt(args[4]) : 0);
        int first = args.length > 5 ? Integer.parseInt(args[5]) : 0;
        Ending.listen();
        producer.start();
        long begin = System.currentTimeMillis();
        int sent = 0;
        int failures = 0;
        String lastFailure = "";
        long lastProgress = begin;
        while (sent < count && Ending.TOLD.getCount() > 0
                && System.currentTimeMillis() - lastProgress < PATIENCE_MS) {
            try {
                byte[] body = ("message " + sent).getBytes("UTF-8");
                if (producer.send(new Message(topic, "TagA", String.valueOf(first + sent), body)).getSendStatus()
                        == SendStatus.SEND_OK) {
                    if (sent++ == 0) {
                        System.out.println("sending");
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
        long ms = System.currentTimeMillis() - begin;
        producer.shutdown();
        Ending.exit(String.format("{\"sent\":%d,\"failures\":%d,\"ms\":%d,\"last_failure\":\"%s\"}",
            sent, failures, ms, lastFailure.replace('"', '\'').replace('\\', '/')));
    }

    private static void pace(long begin, int sent, int perSecond) throws InterruptedException {
        long ahead = perSecond == 0 ? 0 : begin + sent * 1000L / perSecond - System.currentTimeMillis();
        if (ahead > 0) {
            Thread.sleep(ahead);
        }
    }
}
