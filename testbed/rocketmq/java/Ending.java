import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** SIGTERM as a request to come to an end: TOLD opens, and main has some seconds to report and to leave by exit. */
final class Ending {
    static final CountDownLatch TOLD = new CountDownLatch(1);
    private static final int PATIENCE_S = 20;

    private Ending() {
    }

    static void listen() {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            TOLD.countDown();
            try {
                new CountDownLatch(1).await(PATIENCE_S, TimeUnit.SECONDS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
    }

    /** Prints the report, in one piece and on a line of its own whatever else is printed. System.exit would wait for
     *  the hook. */
    static void exit(String report) {
        System.out.print(System.lineSeparator() + report + System.lineSeparator());
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
