//! Kafka's own performance tools against a real broker, directly and through each contender.
