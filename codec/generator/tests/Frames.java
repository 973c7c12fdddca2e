import java.io.BufferedWriter;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/**
 * Prints messages of every API, direction and version that these Kafka classes have, filled at random, one
 * a line: the frame as the message's own class writes it, and all that the object says.
 *
 * No schema and no definition has a say in what is valid: each class reads itself from a {@link Dictation}.
 * The classes differ from release to release (that of record sets has moved); what differs is not named here.
 *
 * Arguments: a seed, and how many messages there are at least of each version, and of each API.
 */
final class Frames {
    private static final HexFormat HEX = HexFormat.of();

    private final Random random;

    private Frames(Random random) {
        this.random = random;
    }

    public static void main(String[] args) {
        Frames frames = new Frames(new Random(Long.parseLong(args[0])));
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(System.out)));
        for (ApiMessageType type : ApiMessageType.values()) {
            int last = type.highestSupportedVersion(true);
            int versions = last - type.lowestSupportedVersion() + 1;
            // An API of few versions gets more of each: there are no others to fill its fields.
            int count = Math.max(Integer.parseInt(args[1]), Integer.parseInt(args[2]) / Math.max(versions, 1));
            for (int version = type.lowestSupportedVersion(); version <= last; version++) {
                for (int i = 0; i < count; i++) {
                    out.println(frames.request(type, (short) version));
                    out.println(frames.response(type, (short) version));
                }
            }
        }
        out.flush();
    }

    private String request(ApiMessageType type, short version) {
        short headerVersion = type.requestHeaderVersion(version);
        RequestHeaderData header = new RequestHeaderData()
                .setRequestApiKey(type.apiKey())
                .setRequestApiVersion(version)
                .setCorrelationId(7);
        if (headerVersion > 0) {
            header.setClientId(random.nextInt(5) == 0 ? null : "frames");
        }
        ApiMessage body = filled(type::newRequest, version, headerVersion == 2);
        return line("Request", type, version, header, headerVersion, headerVersion == 2, body, type::newRequest);
    }

    private String response(ApiMessageType type, short version) {
        short headerVersion = type.responseHeaderVersion(version);
        ResponseHeaderData header = new ResponseHeaderData().setCorrelationId(7);
        ApiMessage body = filled(type::newResponse, version, type.requestHeaderVersion(version) == 2);
        return line("Response", type, version, header, headerVersion, headerVersion == 1, body, type::newResponse);
    }

    private String line(
            String direction,
            ApiMessageType type,
            short version,
            Message header,
            short headerVersion,
            boolean hasTags,
            Message body,
            Supplier<ApiMessage> empty) {
        int fixed = bytes(header, headerVersion).length - (hasTags ? 1 : 0);
        if (hasTags && random.nextInt(5) == 0) {
            header.unknownTaggedFields().add(new RawTaggedField(0, new byte[] {1, 2}));
            header.unknownTaggedFields().add(new RawTaggedField(70_000, new byte[200]));
        }
        StringBuilder line = new StringBuilder();
        line.append("{\"direction\":\"").append(direction).append('"');
        line.append(",\"api_key\":").append(type.apiKey()).append(",\"api_version\":").append(version);
        line.append(",\"flexible\":").append(type.requestHeaderVersion(version) == 2);
        line.append(",\"fixed\":").append(fixed).append(",\"frame\":\"");
        line.append(HEX.formatHex(bytes(header, headerVersion))).append(HEX.formatHex(bytes(body, version)));
        line.append("\",\"damaged\":");
        damaged(empty, version, bytes(body, version), line);
        line.append(",\"api_key_name\":\"").append(ApiKeys.forId(type.apiKey())).append('"');
        line.append(",\"json_header\":").append(json(header, headerVersion));
        line.append(",\"json\":").append(json(body, version));
        line.append(",\"header_tags\":");
        print(header.unknownTaggedFields(), line);
        line.append(",\"said\":");
        print(body, line);
        return line.append('}').toString();
    }

    /**
     * A few bodies with something wrong in them: the bytes, how many of them the class leaves, and why it
     * refuses them if it does.
     */
    private void damaged(Supplier<ApiMessage> empty, short version, byte[] body, StringBuilder line) {
        line.append('[');
        for (int i = 0; i < 6 && body.length < 2000; i++) {
            byte[] bytes = damage(body);
            ByteBuffer buffer = ByteBuffer.wrap(bytes);
            String refusal = "";
            try {
                empty.get().read(new ByteBufferAccessor(buffer), version);
            } catch (RuntimeException e) {
                refusal = e.toString().replaceAll("[^ -~]|[\"\\\\]", ".");
            }
            line.append(i == 0 ? "{" : ",{").append("\"body\":");
            hex(bytes, line);
            line.append(",\"left\":").append(buffer.remaining());
            line.append(",\"refusal\":\"").append(refusal).append("\"}");
        }
        line.append(']');
    }

    /** One or two bytes changed, taken out or put in; or a varint beyond what an int holds. */
    private byte[] damage(byte[] body) {
        byte[] damaged = body;
        for (int i = random.nextInt(2); i < 2; i++) {
            int at = random.nextInt(damaged.length + 1);
            int end = Math.min(damaged.length, at + random.nextInt(2));
            byte[] made = new byte[random.nextInt(2)];
            if (random.nextInt(8) == 0) {
                made = new byte[] {-1, -1, -1, -1, 15};
            } else if (made.length > 0) {
                made[0] = (byte) (random.nextBoolean() ? random.nextInt() : random.nextInt(12) - 4);
            }
            ByteBuffer joined = ByteBuffer.allocate(damaged.length - (end - at) + made.length);
            joined.put(damaged, 0, at).put(made).put(damaged, end, damaged.length - end);
            damaged = joined.array();
        }
        return damaged;
    }

    /** As the request log of Kafka's own brokers has it. */
    private static Object json(Message message, short version) {
        Class<?> type = message.getClass();
        try {
            return Class.forName(type.getName() + "JsonConverter")
                    .getMethod("write", type, short.class, boolean.class)
                    .invoke(null, message, version, false);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(message + " is smaller than it says");
        }
        return buffer.array();
    }

    /** A message that was talked into being. */
    private ApiMessage filled(Supplier<ApiMessage> empty, short version, boolean flexible) {
        Dictation dictation = new Dictation(random, flexible);
        int failedAt = 0;
        int failures = 0;
        while (true) {
            try {
                ApiMessage message = dictation.read(empty, version);
                message = dictation.widened(empty, version, message);
                sortUnknownTags(message);
                return message;
            } catch (RuntimeException e) {
                // A null that cannot be, or a tag that this version does not have: the last answer or
                // one of those before must be another.
                int at = dictation.next;
                failures = at > failedAt ? 0 : failures + 1;
                failedAt = Math.max(failedAt, at);
                if (failures > 1000) {
                    throw e;
                }
                dictation.forget(at - 1 - failures / 8);
            }
        }
    }

    /** Tagged fields come in any order and twice; they are written in order and once. */
    private static void sortUnknownTags(Object value) {
        if (value instanceof Collection<?> elements) {
            elements.forEach(Frames::sortUnknownTags);
        } else if (value instanceof Message message) {
            fields(message).values().forEach(Frames::sortUnknownTags);
            Map<Integer, RawTaggedField> sorted = new TreeMap<>();
            message.unknownTaggedFields().forEach(field -> sorted.put(field.tag(), field));
            message.unknownTaggedFields().clear();
            message.unknownTaggedFields().addAll(sorted.values());
        }
    }

    /**
     * Bytes that are made up as they are read. What is asked for again after a failure is answered as before.
     */
    private static final class Dictation implements InvocationHandler {
        private final Random random;
        private final boolean flexible;
        /** How many values may be told before the message is brought to its end. */
        private final int budget;
        private final List<Object> answers = new ArrayList<>();
        private int next;

        Dictation(Random random, boolean flexible) {
            this.random = random;
            this.flexible = flexible;
            this.budget = 10 + random.nextInt(250);
        }

        ApiMessage read(Supplier<ApiMessage> empty, short version) {
            next = 0;
            ApiMessage message = empty.get();
            Class<?>[] interfaces = {Readable.class};
            Object readable = Proxy.newProxyInstance(Readable.class.getClassLoader(), interfaces, this);
            message.read((Readable) readable, version);
            return message;
        }

        /** In classic versions counts and lengths look like values, so all were small: not all need be. */
        ApiMessage widened(Supplier<ApiMessage> empty, short version, ApiMessage message) {
            for (int i = 0; i < 24 && !flexible; i++) {
                int index = random.nextInt(answers.size() + 1);
                Object small = index < answers.size() ? answers.get(index) : null;
                if (!(small instanceof Short || small instanceof Integer)) {
                    continue;
                }
                // No length and no count.
                int wide = -2 - random.nextInt(30_000);
                answers.set(index, small instanceof Short ? (Object) (short) wide : (Object) wide);
                try {
                    message = read(empty, version);
                } catch (RuntimeException e) {
                    answers.set(index, small);
                }
            }
            return message;
        }

        void forget(int from) {
            answers.subList(Math.max(from, 0), answers.size()).clear();
        }

        @Override
        public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
            if (method.isDefault()) {
                return InvocationHandler.invokeDefault(proxy, method, args);
            }
            if (method.getName().equals("remaining")) {
                return 1 << 20;
            }
            if (next == answers.size()) {
                answers.add(answer(method.getName(), args));
            }
            Object answer = answers.get(next++);
            return answer instanceof ByteBuffer buffer ? buffer.duplicate() : answer;
        }

        private Object answer(String method, Object[] args) {
            switch (method) {
                case "readByte":
                    return (byte) (random.nextInt(3) == 0 ? -1 : wide());
                case "readShort":
                    return (short) (flexible ? wide() : count());
                case "readInt":
                    return (int) (flexible ? wide() : count());
                case "readLong":
                    return wide();
                case "readDouble":
                    return Double.longBitsToDouble(random.nextLong());
                case "readUnsignedVarint":
                    return 1 + count();
                case "readArray":
                    return text((int) args[0]);
                case "readByteBuffer":
                    return ByteBuffer.wrap(text((int) args[0]));
                default:
                    throw new IllegalStateException("nobody has asked for " + method);
            }
        }

        /**
         * Often none or few, now and then null, or so many that a compact count takes a second byte.
         */
        private int count() {
            int chance = random.nextInt(256);
            if (answers.size() > budget) {
                return chance < 64 ? -1 : 0;
            }
            return chance < (flexible ? 60 : 5) ? -1
                    : chance < 90 ? 0
                    : chance < 130 ? 1
                    : chance < 250 ? 2 + random.nextInt(4)
                    : 126 + random.nextInt(10);
        }

        /** Bytes that may be a string. */
        private byte[] text(int length) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < length; i++) {
                boolean two = i + 1 < length && random.nextInt(10) == 0;
                text.append(two ? 'ü' : (char) ('a' + random.nextInt(26)));
                i += two ? 1 : 0;
            }
            return text.toString().getBytes(StandardCharsets.UTF_8);
        }

        /** Any value, extreme ones often. */
        private long wide() {
            switch (random.nextInt(6)) {
                case 0:
                    return -1;
                case 1:
                    return random.nextInt(256);
                case 2:
                    return Long.MAX_VALUE >>> 8 * random.nextInt(8);
                default:
                    return random.nextLong();
            }
        }
    }

    /** As JSON: numbers and bools as numbers (of a float its bits), all bytes and strings in hex. */
    private static void print(Object value, StringBuilder out) {
        if (value == null) {
            out.append("null");
        } else if (value instanceof Boolean bool) {
            out.append(bool ? 1 : 0);
        } else if (value instanceof Double number) {
            out.append(Double.doubleToRawLongBits(number));
        } else if (value instanceof Number number) {
            out.append(number);
        } else if (value instanceof String text) {
            hex(text.getBytes(StandardCharsets.UTF_8), out);
        } else if (value instanceof Uuid uuid) {
            ByteBuffer bytes = ByteBuffer.allocate(16);
            bytes.putLong(uuid.getMostSignificantBits()).putLong(uuid.getLeastSignificantBits());
            hex(bytes.array(), out);
        } else if (value instanceof byte[] bytes) {
            hex(bytes, out);
        } else if (value instanceof ByteBuffer buffer) {
            byte[] bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
            hex(bytes, out);
        } else if (value instanceof RawTaggedField field) {
            out.append('[').append(field.tag()).append(',');
            hex(field.data(), out);
            out.append(']');
        } else if (value instanceof Collection<?> elements) {
            out.append('[');
            for (Object element : elements) {
                print(element, out.append(out.charAt(out.length() - 1) == '[' ? "" : ","));
            }
            out.append(']');
        } else if (value instanceof Message message) {
            print(fields(message), out);
        } else if (value instanceof Map<?, ?> fields) {
            out.append('{');
            fields.forEach((name, field) -> {
                out.append(out.charAt(out.length() - 1) == '{' ? "\"" : ",\"").append(name).append("\":");
                print(field, out);
            });
            out.append('}');
        } else {
            print(buffer(value), out);
        }
    }

    private static Object buffer(Object records) {
        try {
            return records.getClass().getMethod("buffer").invoke(records);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("neither a value nor a record set: " + records.getClass(), e);
        }
    }

    private static void hex(byte[] bytes, StringBuilder out) {
        out.append('"').append(HEX.formatHex(bytes)).append('"');
    }

    /** All that a message or struct has; unknown tagged fields among it. */
    private static Map<String, Object> fields(Message message) {
        Map<String, Object> fields = new TreeMap<>();
        for (Field field : message.getClass().getDeclaredFields()) {
            // The last two link the elements of a set.
            if (Modifier.isStatic(field.getModifiers()) || List.of("next", "prev").contains(field.getName())) {
                continue;
            }
            field.setAccessible(true);
            try {
                fields.put(field.getName(), field.get(message));
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
        }
        return fields;
    }
}
