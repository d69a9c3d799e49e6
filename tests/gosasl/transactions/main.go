// Three transactions: transactions CLIENT HOST:PORT TOPIC TRANSACTIONAL-ID GROUP OFFSET. The second is aborted, the third commits
// an offset of the group. Prints the values that a reader of committed records gets, as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type story struct {
	bootstrap, topic, id, group string
	offset                      int64
}

const wanted = 3

func main() {
	words := os.Args[2:]
	offset, err := strconv.ParseInt(words[4], 10, 64)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	clients := map[string]func(context.Context, story) []string{"franz-go": franz, "sarama": saramas}
	check(json.NewEncoder(os.Stdout).Encode(clients[os.Args[1]](ctx, story{words[0], words[1], words[2], words[3], offset})))
}

func franz(ctx context.Context, told story) []string {
	client, err := kgo.NewClient(kgo.SeedBrokers(told.bootstrap), kgo.TransactionalID(told.id))
	check(err)
	defer client.Close()
	for number, values := range [][]string{{"one", "two"}, {"aborted"}, {"three"}} {
		check(client.BeginTransaction())
		for _, value := range values {
			check(client.ProduceSync(ctx, &kgo.Record{Topic: told.topic, Value: []byte(value)}).FirstErr())
		}
		if number == 2 {
			commitOffset(ctx, client, told)
		}
		check(client.EndTransaction(ctx, kgo.TransactionEndTry(number != 1)))
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(told.bootstrap), kgo.ConsumeTopics(told.topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	check(err)
	defer reader.Close()
	var read []string
	for len(read) < wanted {
		fetches := reader.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { read = append(read, string(record.Value)) })
	}
	return read
}

// The client does this by itself for a group that it is a member of.
func commitOffset(ctx context.Context, client *kgo.Client, told story) {
	id, epoch, err := client.ProducerID(ctx)
	check(err)
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = told.id, id, epoch, told.group
	added, err := add.RequestWith(ctx, client)
	check(err)
	checkCode(added.ErrorCode)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group = told.id, id, epoch, told.group
	commit.Generation = -1
	topic, partition := kmsg.NewTxnOffsetCommitRequestTopic(), kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = told.offset
	topic.Topic, topic.Partitions = told.topic, append(topic.Partitions, partition)
	commit.Topics = append(commit.Topics, topic)
	committed, err := commit.RequestWith(ctx, client)
	check(err)
	checkCode(committed.Topics[0].Partitions[0].ErrorCode)
}

func saramas(ctx context.Context, told story) []string {
	config := sarama.NewConfig()
	config.Version = sarama.V2_5_0_0
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Transaction.ID = told.id
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	producer, err := sarama.NewSyncProducer([]string{told.bootstrap}, config)
	check(err)
	defer producer.Close()
	for number, values := range [][]string{{"one", "two"}, {"aborted"}, {"three"}} {
		check(producer.BeginTxn())
		for _, value := range values {
			_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: told.topic, Value: sarama.StringEncoder(value)})
			check(err)
		}
		switch number {
		case 1:
			check(producer.AbortTxn())
			continue
		case 2:
			position := &sarama.PartitionOffsetMetadata{Partition: 0, Offset: told.offset}
			check(producer.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{told.topic: {position}}, told.group))
		}
		check(producer.CommitTxn())
	}
	consumer, err := sarama.NewConsumer([]string{told.bootstrap}, config)
	check(err)
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(told.topic, 0, sarama.OffsetOldest)
	check(err)
	defer partition.Close()
	var read []string
	for len(read) < wanted {
		select {
		case message := <-partition.Messages():
			read = append(read, string(message.Value))
		case <-ctx.Done():
			check(ctx.Err())
		}
	}
	return read
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func checkCode(code int16) {
	if code != 0 {
		check(fmt.Errorf("error code %d", code))
	}
}
