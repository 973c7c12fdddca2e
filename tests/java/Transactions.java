import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Reads a topic and writes it to another in transactions, offsets included: one transaction that is
 * aborted, then one that is committed. Prints what a read_committed consumer then finds.
 *
 * Arguments: bootstrap servers, source topic (one partition, filled), target topic (one partition),
 * number of records in the source.
 */
public class Transactions {
    public static void main(String[] args) {
        String bootstrap = args[0];
        TopicPartition source = new TopicPartition(args[1], 0);
        TopicPartition target = new TopicPartition(args[2], 0);
        int count = Integer.parseInt(args[3]);

        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "transactions");
                KafkaProducer<String, String> producer = producer(bootstrap)) {
            consumer.subscribe(List.of(source.topic()));
            List<String> read = read(consumer, count);
            Map<TopicPartition, OffsetAndMetadata> offsets =
                    Map.of(source, new OffsetAndMetadata(count));
            producer.initTransactions();

            producer.beginTransaction();
            read.forEach(value -> producer.send(new ProducerRecord<>(target.topic(), "aborted " + value)));
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.flush();
            producer.abortTransaction();

            producer.beginTransaction();
            read.forEach(value -> producer.send(new ProducerRecord<>(target.topic(), "committed " + value)));
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        }

        try (KafkaConsumer<String, String> consumer = consumer(bootstrap, "transactions")) {
            System.out.println("offset " + consumer.committed(java.util.Set.of(source)).get(source).offset());
            consumer.assign(List.of(target));
            consumer.seekToBeginning(List.of(target));
            read(consumer, count).forEach(System.out::println);
        }
    }

    private static List<String> read(KafkaConsumer<String, String> consumer, int count) {
        List<String> values = new ArrayList<>();
        long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
        while (values.size() < count) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + values.size() + " of " + count + " records came");
            }
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                values.add(record.value());
            }
        }
        return values;
    }

    private static KafkaConsumer<String, String> consumer(String bootstrap, String group) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", "false");
        config.put("isolation.level", "read_committed");
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static KafkaProducer<String, String> producer(String bootstrap) {
        Properties config = new Properties();
        config.put("bootstrap.servers", bootstrap);
        config.put("transactional.id", "transactions");
        return new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }
}
