// Three Go clients over SASL: sasl CLIENT HOST:PORT TOPIC MECHANISM USER PASSWORD CA-FILE. Each writes two records and
// reads them back. Prints what it read as JSON, or why it was refused. Without a file: SASL_PLAINTEXT.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	kafkagosasl "github.com/segmentio/kafka-go/sasl"
	kafkagoplain "github.com/segmentio/kafka-go/sasl/plain"
	kafkagoscram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	xdgscram "github.com/xdg-go/scram"
)

type login struct {
	bootstrap, topic, mechanism, user, password string
	tls                                         *tls.Config
}

var values = []string{"one", "two"}

func main() {
	words := os.Args[2:]
	given := login{words[0], words[1], words[2], words[3], words[4], nil}
	if len(words) > 5 {
		authority, err := os.ReadFile(words[5])
		if err != nil {
			panic(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		given.tls = &tls.Config{RootCAs: pool, ServerName: "localhost"}
	}
	clients := map[string]func(context.Context, login) ([]string, error){"franz-go": franz, "sarama": saramas, "kafka-go": kafkaGo}
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	read, err := clients[os.Args[1]](ctx, given)
	found := map[string]any{"read": read}
	if err != nil {
		found = map[string]any{"refused": err.Error()}
	}
	json.NewEncoder(os.Stdout).Encode(found)
}

func franz(ctx context.Context, given login) ([]string, error) {
	var mechanism sasl.Mechanism
	switch given.mechanism {
	case "PLAIN":
		mechanism = plain.Auth{User: given.user, Pass: given.password}.AsMechanism()
	case "SCRAM-SHA-256":
		mechanism = scram.Auth{User: given.user, Pass: given.password}.AsSha256Mechanism()
	default:
		mechanism = scram.Auth{User: given.user, Pass: given.password}.AsSha512Mechanism()
	}
	options := []kgo.Opt{kgo.SeedBrokers(given.bootstrap), kgo.SASL(mechanism), kgo.ConsumeTopics(given.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequestRetries(2), kgo.RecordRetries(2)}
	if given.tls != nil {
		options = append(options, kgo.DialTLSConfig(given.tls))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return nil, err
	}
	var read []string
	for _, value := range values {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: given.topic, Value: []byte(value)}).FirstErr(); err != nil {
			return nil, err
		}
	}
	for len(read) < len(values) && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { read = append(read, string(record.Value)) })
	}
	return read, ctx.Err()
}

type scramClient struct {
	hash         xdgscram.HashGeneratorFcn
	conversation *xdgscram.ClientConversation
}

func (client *scramClient) Begin(user, password, authorization string) error {
	made, err := client.hash.NewClient(user, password, authorization)
	if err == nil {
		client.conversation = made.NewConversation()
	}
	return err
}

func (client *scramClient) Step(challenge string) (string, error) {
	return client.conversation.Step(challenge)
}
func (client *scramClient) Done() bool { return client.conversation.Done() }

func saramas(ctx context.Context, given login) ([]string, error) {
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Return.Successes = true
	config.Metadata.Retry.Max = 1
	config.Net.SASL.Enable = true
	config.Net.SASL.User, config.Net.SASL.Password = given.user, given.password
	config.Net.SASL.Mechanism = sarama.SASLMechanism(given.mechanism)
	hash := xdgscram.SHA512
	if given.mechanism == "SCRAM-SHA-256" {
		hash = xdgscram.SHA256
	}
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{hash: hash} }
	config.Net.TLS.Enable, config.Net.TLS.Config = given.tls != nil, given.tls
	client, err := sarama.NewClient([]string{given.bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return nil, err
	}
	for _, value := range values {
		message := &sarama.ProducerMessage{Topic: given.topic, Value: sarama.StringEncoder(value)}
		if _, _, err := producer.SendMessage(message); err != nil {
			return nil, err
		}
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	partition, err := consumer.ConsumePartition(given.topic, 0, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	var read []string
	for len(read) < len(values) {
		select {
		case message := <-partition.Messages():
			read = append(read, string(message.Value))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return read, nil
}

func kafkaGo(ctx context.Context, given login) ([]string, error) {
	var mechanism kafkagosasl.Mechanism = kafkagoplain.Mechanism{Username: given.user, Password: given.password}
	if given.mechanism != "PLAIN" {
		algorithm := kafkagoscram.SHA512
		if given.mechanism == "SCRAM-SHA-256" {
			algorithm = kafkagoscram.SHA256
		}
		made, err := kafkagoscram.Mechanism(algorithm, given.user, given.password)
		if err != nil {
			return nil, err
		}
		mechanism = made
	}
	transport := &kafkago.Transport{SASL: mechanism, TLS: given.tls}
	writer := &kafkago.Writer{Addr: kafkago.TCP(given.bootstrap), Topic: given.topic, Transport: transport, MaxAttempts: 2,
		BatchTimeout: 10 * time.Millisecond}
	defer writer.Close()
	for _, value := range values {
		if err := writer.WriteMessages(ctx, kafkago.Message{Value: []byte(value)}); err != nil {
			return nil, err
		}
	}
	dialer := &kafkago.Dialer{Timeout: 20 * time.Second, SASLMechanism: mechanism, TLS: given.tls}
	reader := kafkago.NewReader(kafkago.ReaderConfig{Brokers: []string{given.bootstrap}, Topic: given.topic, Partition: 0,
		Dialer: dialer, MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	var read []string
	for len(read) < len(values) {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		read = append(read, string(message.Value))
	}
	return read, nil
}
