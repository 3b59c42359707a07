import java.util.Map;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** The hook of a client that signs with ACCESS_KEY and SECRET_KEY of the environment; null without them. */
final class Signing {
    private Signing() {
    }

    static RPCHook hook() {
        Map<String, String> given = System.getenv();
        return given.containsKey("ACCESS_KEY")
            ? new AclClientRPCHook(new SessionCredentials(given.get("ACCESS_KEY"), given.get("SECRET_KEY"))) : null;
    }
}
