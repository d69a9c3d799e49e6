// What franz-go's admin client can do, done once: admin HOST:PORT TOPIC [story]. Prints what it found as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	group := topic + "-group"
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	if len(os.Args) > 3 && os.Args[3] == "story" {
		check(writeStory(tellStory(ctx, admin, topic)))
		return
	}
	found := map[string]any{}

	retention := "12345"
	created, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": &retention}, topic)
	check(err)
	check(created.Err)
	_, err = admin.CreateTopic(ctx, 2, 1, nil, topic)
	found["again"] = fmt.Sprint(err)
	grown, err := admin.UpdatePartitions(ctx, 3, topic)
	check(err)
	check(grown.Error())
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	for err == nil && described[0].Err != nil { // not every broker knows it yet
		time.Sleep(100 * time.Millisecond)
		described, err = admin.DescribeTopicConfigs(ctx, topic)
	}
	check(err)
	for _, config := range described[0].Configs {
		if config.Key == "retention.ms" {
			found["retention"] = config.MaybeValue()
		}
	}
	metadata, err := admin.Metadata(ctx, topic)
	check(err)
	found["partitions"] = len(metadata.Topics[topic].Partitions)
	found["brokers"] = len(metadata.Brokers)
	found["controller"] = metadata.Controller

	for n := 0; n < 6; n++ {
		record := &kgo.Record{Topic: topic, Partition: int32(n % 3), Value: []byte(fmt.Sprintf("v%d", n))}
		check(client.ProduceSync(ctx, record).FirstErr())
	}
	consumer, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	check(err)
	read := 0
	for read < 6 {
		fetches := consumer.PollFetches(ctx)
		check(ctx.Err())
		read += fetches.NumRecords()
	}
	check(consumer.CommitUncommittedOffsets(ctx))
	consumer.Close()
	found["read"] = read

	ends, err := admin.ListEndOffsets(ctx, topic)
	check(err)
	total := int64(0)
	ends.Each(func(offset kadm.ListedOffset) { total += offset.Offset })
	found["ends"] = total
	lags, err := admin.Lag(ctx, group)
	check(err)
	check(lags.Error())
	found["lag"] = lags[group].Lag.Total()
	var before kadm.Offsets
	before.AddOffset(topic, 0, 1, -1)
	deleted, err := admin.DeleteRecords(ctx, before)
	check(err)
	check(deleted.Error())
	starts, err := admin.ListStartOffsets(ctx, topic)
	check(err)
	start, _ := starts.Lookup(topic, 0)
	found["start"] = start.Offset
	dirs, err := admin.DescribeAllLogDirs(ctx, nil)
	check(err)
	found["directories"] = len(dirs)
	gone, err := admin.DeleteGroup(ctx, group)
	check(err)
	check(gone.Err)
	_, err = admin.DeleteTopic(ctx, topic)
	check(err)
	topics, err := admin.ListTopics(ctx)
	for err == nil && topics.Has(topic) {
		time.Sleep(100 * time.Millisecond)
		topics, err = admin.ListTopics(ctx)
	}
	check(err)
	found["gone"] = !topics.Has(topic)
	check(json.NewEncoder(os.Stdout).Encode(found))
}
