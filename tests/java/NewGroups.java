import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words in a streams group, then reads them in a share group, each with all that the admin
 * client can ask of such a group. Prints what it found.
 *
 * Arguments: bootstrap servers, a folder for Streams' state.
 */
public class NewGroups {
    private static final List<String> WORDS = List.of("be", "not", "be");
    private static final TopicPartition IN = new TopicPartition("words", 0);
    private static final TopicPartition OUT = new TopicPartition("counts", 0);

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        try (Admin admin = Admin.create(config)) {
            admin.createTopics(Stream.of(IN, OUT).map(p -> new NewTopic(p.topic(), 1, (short) 1)).toList()).all().get();
            try (KafkaProducer<String, String> producer =
                    new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
                WORDS.forEach(word -> producer.send(new ProducerRecord<>(IN.topic(), word, word)));
            }
            streams(admin, config, args[1]);
            share(admin, config);
        }
    }

    private static void streams(Admin admin, Properties config, String state) throws Exception {
        String group = "word-counts";
        StreamsBuilder topology = new StreamsBuilder();
        // In memory: RocksDB is not among the jars.
        topology.<String, String>stream(IN.topic())
                .groupBy((key, word) -> word)
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
                .toStream()
                .to(OUT.topic(), Produced.with(Serdes.String(), Serdes.Long()));
        Properties own = new Properties();
        own.putAll(config);
        own.put("application.id", group);
        own.put("group.protocol", "streams");
        own.put("state.dir", state);
        own.put("commit.interval.ms", "100");
        own.put("statestore.cache.max.bytes", "0");
        own.put("default.key.serde", Serdes.StringSerde.class);
        own.put("default.value.serde", Serdes.StringSerde.class);
        own.put("auto.offset.reset", "earliest");
        try (KafkaStreams streams = new KafkaStreams(topology.build(), own);
                KafkaConsumer<String, Long> consumer =
                        new KafkaConsumer<>(config, new StringDeserializer(), new LongDeserializer())) {
            streams.start();
            consumer.assign(List.of(OUT));
            consumer.seekToBeginning(List.of(OUT));
            List<String> counts = new ArrayList<>();
            until("counts", () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(r -> counts.add(r.key() + "=" + r.value()));
                return counts.size() == WORDS.size();
            });
            System.out.println("streams " + counts);
            StreamsGroupDescription described = admin.describeStreamsGroups(List.of(group),
                    new DescribeStreamsGroupsOptions().includeTopologyDescription(true)).all().get().get(group);
            System.out.println("streams " + described.groupState() + ", members " + described.members().size()
                    + ", subtopologies " + described.topologyDescription().get().subtopologies().size());
        }
        System.out.println("streams offset " + offset(admin, group));
        admin.alterStreamsGroupOffsets(group, Map.of(IN, new OffsetAndMetadata(1))).all().get();
        System.out.println("streams offset " + offset(admin, group));
        admin.deleteStreamsGroupOffsets(group, Set.of(IN)).all().get();
        admin.deleteStreamsGroups(List.of(group)).all().get();
    }

    private static long offset(Admin admin, String group) throws Exception {
        return admin.listStreamsGroupOffsets(Map.of(group, new ListStreamsGroupOffsetsSpec()))
                .partitionsToOffsetAndMetadata(group).get().get(IN).offset();
    }

    private static void share(Admin admin, Properties config) throws Exception {
        String group = "word-sharers";
        AlterConfigOp earliest = new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(
                new ConfigResource(ConfigResource.Type.GROUP, group), List.of(earliest))).all().get();
        Properties own = new Properties();
        own.putAll(config);
        own.put("group.id", group);
        own.put("share.acknowledgement.mode", "explicit");
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(own, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(IN.topic()));
            List<String> read = new ArrayList<>();
            until("shared words", () -> {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100))) {
                    read.add(record.value());
                    consumer.acknowledge(record, AcknowledgeType.ACCEPT);
                }
                return read.size() == WORDS.size();
            });
            consumer.commitSync().values().forEach(e -> e.ifPresent(x -> { throw x; }));
            System.out.println("share " + read);
            ShareGroupDescription described = admin.describeShareGroups(List.of(group)).all().get().get(group);
            System.out.println("share " + described.groupState() + ", members " + described.members().size());
        }
        System.out.println("share lag " + lag(admin, group));
        admin.alterShareGroupOffsets(group, Map.of(IN, 1L)).all().get();
        System.out.println("share lag " + lag(admin, group));
        admin.deleteShareGroupOffsets(group, Set.of(IN.topic())).all().get();
        admin.deleteShareGroups(List.of(group)).all().get();
    }

    private static long lag(Admin admin, String group) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
                .partitionsToOffsetInfo(group).get().get(IN).lag().get();
    }

    private static void until(String what, Supplier<Boolean> done) {
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (!done.get()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("waited in vain for " + what);
            }
        }
    }
}
