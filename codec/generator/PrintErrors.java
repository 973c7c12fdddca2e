import org.apache.kafka.common.protocol.Errors;

/** Prints every error code of Kafka and its name: the definitions of messages do not have them. */
final class PrintErrors {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.println(error.code() + " " + error.name());
        }
    }
}
