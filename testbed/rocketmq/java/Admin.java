import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * mqadmin commands one after the other in one JVM, since most of a command's time is the start of its JVM.
 * Prints "port N" and takes one connection there: an int32 count and that many strings (int32 length, UTF-8)
 * are a command; its standard output and standard error are answered as two such strings.
 */
public class Admin {
    public static void main(String[] none) throws Exception {
        PrintStream out = System.out;
        Thread waker = new Thread(Admin::wake);
        waker.setDaemon(true);
        waker.start();
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            out.println("port " + listener.getLocalPort());
            try (Socket connection = listener.accept()) {
                serve(new DataInputStream(connection.getInputStream()),
                    new DataOutputStream(connection.getOutputStream()));
            }
        }
        System.exit(0);
    }

    /** A client's end waits up to 3 s for a thread that sleeps on its empty queue: wakes that thread. */
    private static void wake() {
        Thread[] threads = new Thread[1000];
        while (true) {
            int count = Thread.enumerate(threads);
            for (int i = 0; i < count; i++) {
                if (threads[i].getName().equals("NettyEventExecutor")) {
                    threads[i].interrupt();
                }
            }
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    private static void serve(DataInputStream in, DataOutputStream out) throws Exception {
        while (true) {
            String[] args;
            try {
                args = new String[in.readInt()];
            } catch (EOFException end) {
                return;
            }
            for (int i = 0; i < args.length; i++) {
                byte[] bytes = new byte[in.readInt()];
                in.readFully(bytes);
                args[i] = new String(bytes, "UTF-8");
            }
            ByteArrayOutputStream stdout = new ByteArrayOutputStream();
            ByteArrayOutputStream stderr = new ByteArrayOutputStream();
            PrintStream before = System.out;
            PrintStream beforeErr = System.err;
            System.setOut(new PrintStream(stdout, true, "UTF-8"));
            System.setErr(new PrintStream(stderr, true, "UTF-8"));
            try {
                MQAdminStartup.main(args);
            } finally {
                System.out.flush();
                System.err.flush();
                System.setOut(before);
                System.setErr(beforeErr);
            }
            for (ByteArrayOutputStream printed : new ByteArrayOutputStream[] {stdout, stderr}) {
                out.writeInt(printed.size());
                printed.writeTo(out);
            }
            out.flush();
        }
    }
}
