import static org.apache.kafka.clients.admin.ScramMechanism.SCRAM_SHA_256;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Asks a broker for what it must refuse, by the calls that applications make, and prints for each
 * the API and the error that the client tells: "CreateTopics TOPIC_ALREADY_EXISTS". Some errors
 * clients do not tell, as they try again until their time is up, or make something else of them:
 * those are provoked, and not printed.
 *
 * Argument: bootstrap servers of a cluster with one broker, whose id is 1.
 */
public class NestedErrors {
    private static final String HERE = "nested-here";
    private static final String NOWHERE = "nested-nowhere";
    private static final TopicPartition PRESENT = new TopicPartition(HERE, 0);
    private static final TopicPartition ABSENT = new TopicPartition(NOWHERE, 0);
    /** For calls that the client repeats until its time is up. */
    private static final Duration BRIEF = Duration.ofMillis(700);

    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        try (Admin admin = Admin.create(config(bootstrap))) {
            create(admin, List.of(new NewTopic(HERE, 1, (short) 1)));
            topics(admin);
            configs(admin);
            users(admin);
            cluster(admin);
            groupsThatAreNot(admin);
            groupsThatAre(bootstrap, admin);
            records(bootstrap, admin);
            transactions(bootstrap, admin);
            topicsThatAreGone(bootstrap, admin);
        }
    }

    private static void topics(Admin admin) throws Exception {
        created(admin, new NewTopic(HERE, 1, (short) 1));
        created(admin, new NewTopic(NOWHERE, 0, (short) 1));
        created(admin, new NewTopic(NOWHERE, 1, (short) 3));
        created(admin, new NewTopic(NOWHERE, Map.of(0, List.of(99))));
        created(admin, new NewTopic("no/name", 1, (short) 1));
        created(admin, new NewTopic(NOWHERE, 1, (short) 1).configs(Map.of("no.such", "config")));
        told("DeleteTopics", admin.deleteTopics(List.of(NOWHERE)).all());
        told("DeleteTopics", admin.deleteTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).all());
        told("CreatePartitions", admin.createPartitions(Map.of(NOWHERE, NewPartitions.increaseTo(2))).all());
        told("CreatePartitions", admin.createPartitions(Map.of(HERE, NewPartitions.increaseTo(1))).all());
        told("DescribeTopicPartitions", admin.describeTopics(List.of(NOWHERE)).allTopicNames());
        told("Metadata", admin.describeTopics(TopicCollection.ofTopicIds(List.of(Uuid.randomUuid()))).allTopicIds());
        told("ElectLeaders", admin.electLeaders(ElectionType.PREFERRED, Set.of(ABSENT)).all());
        told("ElectLeaders", admin.electLeaders(ElectionType.PREFERRED, Set.of(PRESENT)).all());
        reassigned(admin, ABSENT, Optional.of(new NewPartitionReassignment(List.of(1))));
        reassigned(admin, PRESENT, Optional.of(new NewPartitionReassignment(List.of(99))));
        reassigned(admin, PRESENT, Optional.empty());
        told("DeleteRecords", admin.deleteRecords(Map.of(PRESENT, RecordsToDelete.beforeOffset(1000))).all());
    }

    private static void created(Admin admin, NewTopic topic) {
        told("CreateTopics", admin.createTopics(List.of(topic)).all());
    }

    private static void reassigned(Admin admin, TopicPartition partition, Optional<NewPartitionReassignment> to)
            throws Exception {
        told("AlterPartitionReassignments", admin.alterPartitionReassignments(Map.of(partition, to)).all());
    }

    private static void configs(Admin admin) throws Exception {
        ConfigResource absent = new ConfigResource(ConfigResource.Type.TOPIC, NOWHERE);
        ConfigResource present = new ConfigResource(ConfigResource.Type.TOPIC, HERE);
        told("DescribeConfigs", admin.describeConfigs(List.of(absent)).all());
        told("IncrementalAlterConfigs", admin.incrementalAlterConfigs(Map.of(absent, set("retention.ms", "1"))).all());
        told("IncrementalAlterConfigs", admin.incrementalAlterConfigs(Map.of(present, set("no.such", "1"))).all());
    }

    private static List<AlterConfigOp> set(String name, String value) {
        return List.of(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET));
    }

    private static void users(Admin admin) throws Exception {
        told("DescribeUserScramCredentials",
                admin.describeUserScramCredentials(List.of("nobody")).description("nobody"));
        credential(admin, new UserScramCredentialDeletion("nobody", SCRAM_SHA_256));
        credential(admin, new UserScramCredentialUpsertion(
                "nobody", new ScramCredentialInfo(SCRAM_SHA_256, 1), "secret"));
        ClientQuotaEntity user = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "nobody"));
        told("AlterClientQuotas", admin.alterClientQuotas(List.of(new ClientQuotaAlteration(user,
                List.of(new ClientQuotaAlteration.Op("no_such_quota", 1.0))))).all());
        told("CreateDelegationToken", admin.createDelegationToken().delegationToken());
        told("RenewDelegationToken", admin.renewDelegationToken(new byte[] {1}).expiryTimestamp());
        told("ExpireDelegationToken", admin.expireDelegationToken(new byte[] {1}).expiryTimestamp());
        told("DescribeDelegationToken", admin.describeDelegationToken().delegationTokens());
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, HERE, PatternType.LITERAL),
                new AccessControlEntry("User:nobody", "*", AclOperation.READ, AclPermissionType.ALLOW));
        told("CreateAcls", admin.createAcls(List.of(acl)).all());
        told("DescribeAcls", admin.describeAcls(AclBindingFilter.ANY).values());
        told("DeleteAcls", admin.deleteAcls(List.of(AclBindingFilter.ANY)).all());
    }

    private static void credential(Admin admin, UserScramCredentialAlteration alteration) throws Exception {
        told("AlterUserScramCredentials", admin.alterUserScramCredentials(List.of(alteration)).all());
    }

    private static void cluster(Admin admin) throws Exception {
        told("UpdateFeatures", admin.updateFeatures(
                Map.of("no.such.feature", new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE)),
                new UpdateFeaturesOptions()).all());
        told("UnregisterBroker", admin.unregisterBroker(99).all());
        told("UnregisterController", admin.unregisterController(99).all());
        told("AlterReplicaLogDirs", admin.alterReplicaLogDirs(
                Map.of(new TopicPartitionReplica(HERE, 0, 1), "/no/such/folder")).all());
        told("AddRaftVoter", admin.addRaftVoter(9, Uuid.randomUuid(),
                Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 1))).all());
        told("RemoveRaftVoter", admin.removeRaftVoter(9, Uuid.randomUuid()).all());
    }

    private static void groupsThatAreNot(Admin admin) throws Exception {
        List<String> group = List.of("no-such-group");
        told("ConsumerGroupDescribe", admin.describeConsumerGroups(group).all());
        told("ShareGroupDescribe", admin.describeShareGroups(group).all());
        told("StreamsGroupDescribe", admin.describeStreamsGroups(group).all());
        told("DeleteGroups", admin.deleteConsumerGroups(group).all());
        told("OffsetDelete", admin.deleteConsumerGroupOffsets(group.get(0), Set.of(PRESENT)).all());
        told("DeleteShareGroupOffsets", admin.deleteShareGroupOffsets(group.get(0), Set.of(HERE)).all());
        told("AlterShareGroupOffsets", admin.alterShareGroupOffsets(group.get(0), Map.of(ABSENT, 0L)).all());
        told("OffsetCommit", admin.alterConsumerGroupOffsets("offsets-only",
                Map.of(ABSENT, new OffsetAndMetadata(0))).all());
    }

    private static void groupsThatAre(String bootstrap, Admin admin) throws Exception {
        String group = "nested-group";
        try (KafkaConsumer<String, String> member = consumer(bootstrap, Map.of("group.id", group))) {
            member.subscribe(List.of(HERE));
            while (member.assignment().isEmpty()) {
                member.poll(Duration.ofMillis(100));
            }
            told("DeleteGroups", admin.deleteConsumerGroups(List.of(group)).all());
            told("OffsetDelete", admin.deleteConsumerGroupOffsets(group, Set.of(PRESENT)).all());
            told("OffsetCommit", admin.alterConsumerGroupOffsets(group,
                    Map.of(PRESENT, new OffsetAndMetadata(0))).all());
            told("LeaveGroup", admin.removeMembersFromConsumerGroup(group,
                    new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("nobody")))).all());
            joined(bootstrap, "JoinGroup", Map.of("group.id", group, "partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer.StickyAssignor"));
        }
        joined(bootstrap, "JoinGroup", Map.of("group.id", group,
                "session.timeout.ms", "50", "heartbeat.interval.ms", "10"));
        joined(bootstrap, "ConsumerGroupHeartbeat", Map.of("group.id", "another-group",
                "group.protocol", "consumer", "group.remote.assignor", "no-such-assignor"));
    }

    private static void joined(String bootstrap, String api, Map<String, String> more) throws Exception {
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, more)) {
            consumer.subscribe(List.of(HERE));
            told(api, () -> consumer.poll(Duration.ofSeconds(30)));
        }
    }

    private static void records(String bootstrap, Admin admin) throws Exception {
        Map<String, Map<String, String>> fussy = Map.of(
                "fussy-about-size", Map.of("max.message.bytes", "100"),
                "fussy-about-keys", Map.of("cleanup.policy", "compact"),
                "fussy-about-time", Map.of("message.timestamp.before.max.ms", "1000"));
        create(admin, fussy.entrySet().stream()
                .map(topic -> new NewTopic(topic.getKey(), 1, (short) 1).configs(topic.getValue()))
                .toList());
        try (KafkaProducer<String, String> producer = producer(bootstrap, Map.of())) {
            told("Produce", producer.send(new ProducerRecord<>("fussy-about-size", "x".repeat(1000))));
            told("Produce", producer.send(new ProducerRecord<>("fussy-about-keys", "no key")));
            told("Produce", producer.send(new ProducerRecord<>("fussy-about-time", 0, 1L, "key", "old")));
        }
        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, Map.of("auto.offset.reset", "none"))) {
            consumer.assign(List.of(PRESENT));
            consumer.seek(PRESENT, 1000);
            refused(() -> consumer.poll(Duration.ofSeconds(30)));
        }
    }

    private static void transactions(String bootstrap, Admin admin) throws Exception {
        told("DescribeTransactions", admin.describeTransactions(List.of("no-such-id")).all());
        try (KafkaProducer<String, String> producer = producer(bootstrap,
                Map.of("transactional.id", "patient", "transaction.timeout.ms", "2000000000"))) {
            refused(() -> {
                producer.initTransactions();
                return null;
            });
        }
        Map<String, String> id = Map.of("transactional.id", "nested-transactions");
        try (KafkaProducer<String, String> first = producer(bootstrap, id);
                KafkaProducer<String, String> second = producer(bootstrap, id)) {
            first.initTransactions();
            first.beginTransaction();
            first.send(new ProducerRecord<>(HERE, "to be fenced")).get();
            second.initTransactions();
            told("EndTxn", () -> {
                first.commitTransaction();
                return null;
            });
            second.beginTransaction();
            refused(() -> {
                second.sendOffsetsToTransaction(Map.of(PRESENT, new OffsetAndMetadata(0)),
                        new ConsumerGroupMetadata("nested-group", 7, "nobody", Optional.empty()));
                return null;
            });
            second.abortTransaction();
        }
        ProducerState known = admin.describeProducers(List.of(PRESENT)).partitionResult(PRESENT).get()
                .activeProducers().get(0);
        told("WriteTxnMarkers", admin.abortTransaction(
                new AbortTransactionSpec(PRESENT, known.producerId(), (short) 0, 0)).all());
    }

    /** Clients whose metadata still has topics that have been deleted since. */
    private static void topicsThatAreGone(String bootstrap, Admin admin) throws Exception {
        List<String> names = List.of("gone-0", "gone-1", "gone-2", "gone-3", "gone-4", "gone-5");
        List<TopicPartition> gone = names.stream().map(name -> new TopicPartition(name, 0)).toList();
        create(admin, names.stream().map(name -> new NewTopic(name, 1, (short) 1)).toList());
        try (KafkaProducer<String, String> producer = producer(bootstrap, Map.of());
                KafkaConsumer<String, String> reader = consumer(bootstrap, Map.of());
                KafkaConsumer<String, String> seeker = consumer(bootstrap, Map.of())) {
            producer.send(new ProducerRecord<>(gone.get(0).topic(), "before")).get();
            // (not polled before: a fetch that waits at the broker would end in one of several errors)
            reader.assign(List.of(gone.get(1)));
            reader.position(gone.get(1));
            seeker.assign(List.of(gone.get(2)));
            seeker.position(gone.get(2));
            try (Admin another = Admin.create(config(bootstrap))) {
                another.deleteTopics(names).all().get();
                while (names.stream().anyMatch(another.listTopics().names().get()::contains)) {
                    Thread.sleep(20);
                }
            }
            told("Produce", producer.send(new ProducerRecord<>(gone.get(0).topic(), "after")));
            reader.poll(BRIEF);
            seeker.seek(gone.get(2), new OffsetAndMetadata(0, Optional.of(0), ""));
            seeker.poll(BRIEF);
            int brief = (int) BRIEF.toMillis();
            refused(admin.listOffsets(Map.of(gone.get(3), OffsetSpec.latest()),
                    new ListOffsetsOptions().timeoutMs(brief)).all()::get);
            refused(admin.deleteRecords(Map.of(gone.get(4), RecordsToDelete.beforeOffset(0)),
                    new DeleteRecordsOptions().timeoutMs(brief)).all()::get);
            refused(admin.describeProducers(List.of(gone.get(5)),
                    new DescribeProducersOptions().timeoutMs(brief)).all()::get);
        }
    }

    /** Creates topics of one partition, and returns when the broker serves them and the client knows. */
    private static void create(Admin admin, List<NewTopic> topics) throws Exception {
        admin.createTopics(topics).all().get();
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        for (NewTopic topic : topics) {
            while (!serves(admin, new TopicPartition(topic.name(), 0))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("nobody serves " + topic);
                }
                Thread.sleep(20);
            }
        }
    }

    private static boolean serves(Admin admin, TopicPartition partition) throws Exception {
        try {
            admin.listOffsets(Map.of(partition, OffsetSpec.latest())).all().get();
            return true;
        } catch (ExecutionException e) {
            return false;
        }
    }

    private static void told(String api, Future<?> answer) {
        told(api, answer::get);
    }

    private static void told(String api, KafkaFuture<?> answer) {
        told(api, answer::get);
    }

    private static void told(String api, Callable<?> call) {
        System.out.println(api + " " + Errors.forException(refused(call)).name());
    }

    /** What the client makes of the refusal. */
    private static Throwable refused(Callable<?> call) {
        try {
            throw new IllegalStateException("not refused: " + call.call());
        } catch (ExecutionException e) {
            return e.getCause();
        } catch (IllegalStateException e) {
            throw e;
        } catch (Exception e) {
            return e;
        }
    }

    private static Properties config(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        return config;
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, Map<String, String> more) {
        Properties config = config(bootstrap);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.putAll(more);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    /** A producer that does not try again. */
    private static KafkaProducer<String, String> producer(String bootstrap, Map<String, String> more) {
        Properties config = config(bootstrap);
        if (more.isEmpty()) {
            config.put("retries", "0");
            config.put("enable.idempotence", "false");
        }
        config.putAll(more);
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }
}
