import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Tells a broker secrets in all ways in which a client and an operator do, and hears them from it: PLAIN,
 * both kinds of SCRAM and a delegation token to authenticate with, credentials of users, tokens that are
 * made, renewed, described and expired, values of configs that the broker takes and refuses, and records.
 *
 * Arguments: bootstrap servers (SASL), a user of PLAIN, its password, a word that is part of all other
 * secrets, a number that is the value of a config, and a file: the connections stay open until it is there.
 * Before that it prints `ready`.
 */
public class Secrets {
    private static final String TOPIC = "secured";

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        String word = args[3];
        String user = args[1] + "-by-scram";
        List<KafkaProducer<String, String>> producers = new ArrayList<>();
        try (Admin admin = Admin.create(config(bootstrap, "PLAIN", jaas("plain.Plain", args[1], args[2], "")))) {
            // (both in one request are refused)
            admin.alterUserScramCredentials(List.of(
                    credential(user, ScramMechanism.SCRAM_SHA_256, word + "-256"))).all().get();
            admin.alterUserScramCredentials(List.of(
                    credential(user, ScramMechanism.SCRAM_SHA_512, word + "-512"))).all().get();
            configs(admin, word, args[4]);

            DelegationToken token = admin.createDelegationToken().delegationToken().get();
            DelegationToken other = admin.createDelegationToken().delegationToken().get();
            // What the controller has taken the broker knows a moment later.
            awaitTokens(admin, 2);
            admin.renewDelegationToken(token.hmac()).expiryTimestamp().get();
            admin.expireDelegationToken(other.hmac(),
                    new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp().get();

            // (by then it knows of the credentials, which were there before)
            awaitTokens(admin, 1);
            producers.add(producer(bootstrap, "SCRAM-SHA-256", jaas("scram.Scram", user, word + "-256", ""), word));
            producers.add(producer(bootstrap, "SCRAM-SHA-512", jaas("scram.Scram", user, word + "-512", ""), word));
            producers.add(producer(bootstrap, "SCRAM-SHA-256", jaas("scram.Scram",
                    token.tokenInfo().tokenId(), token.hmacAsBase64String(), " tokenauth=\"true\""), word));
            System.out.println("ready");
            while (!Files.exists(Path.of(args[5]))) {
                Thread.sleep(50);
            }
        }
        producers.forEach(KafkaProducer::close);
    }

    private static void awaitTokens(Admin admin, int count) throws Exception {
        while (admin.describeDelegationToken().delegationTokens().get().size() != count) {
            Thread.sleep(100);
        }
    }

    private static void configs(Admin admin, String word, String number) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        ConfigResource metrics = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "subscription");
        NewTopic good = new NewTopic(TOPIC, 1, (short) 1).configs(Map.of("retention.ms", number));
        admin.createTopics(List.of(good)).all().get();
        NewTopic bad = new NewTopic("refused", 1, (short) 1).configs(Map.of("retention.ms", word + "-refused"));
        refused(() -> admin.createTopics(List.of(bad)).all().get());

        admin.incrementalAlterConfigs(Map.of(
                topic, List.of(set("segment.ms", number)),
                broker, List.of(
                        set("listener.name.sasl.ssl.keystore.password", word + "-sensitive"),
                        set("of.a.plugin", word + "-unknown")),
                metrics, List.of(set("match", "client_id=" + word + ".*")))).all().get();
        refused(() -> admin.incrementalAlterConfigs(
                Map.of(topic, List.of(set("segment.ms", word + "-refused")))).all().get());
        DescribeConfigsOptions all = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        admin.describeConfigs(List.of(topic, broker, metrics), all).all().get();
    }

    private interface Call {
        void call() throws Exception;
    }

    private static void refused(Call call) throws Exception {
        try {
            call.call();
        } catch (ExecutionException e) {
            if (e.getCause() instanceof InvalidConfigurationException) {
                return;
            }
            throw e;
        }
        throw new IllegalStateException("the broker takes a config that it cannot read");
    }

    private static AlterConfigOp set(String name, String value) {
        return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    }

    private static UserScramCredentialUpsertion credential(String user, ScramMechanism mechanism, String password) {
        return new UserScramCredentialUpsertion(user, new ScramCredentialInfo(mechanism, 4096), password);
    }

    private static KafkaProducer<String, String> producer(String bootstrap, String mechanism, String jaas, String word)
            throws Exception {
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(config(bootstrap, mechanism, jaas), new StringSerializer(), new StringSerializer());
        producer.send(new ProducerRecord<>(TOPIC, word + "-key", word + "-value")).get();
        return producer;
    }

    private static String jaas(String module, String user, String password, String more) {
        return "org.apache.kafka.common.security." + module + "LoginModule required username=\"" + user
                + "\" password=\"" + password + "\"" + more + ";";
    }

    private static Properties config(String bootstrap, String mechanism, String jaas) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", mechanism);
        config.put("sasl.jaas.config", jaas);
        return config;
    }
}
